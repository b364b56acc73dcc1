/* SPDX-License-Identifier: Apache-2.0 */
/* Turns of a worker are bounded: whatever its clients send at once, the loop polls again after
 * about WEIR_TURN_MAX decisions, and a client with one request has its turn between the pieces of
 * long ones.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/daemon/clock.h"
#include "test.h"
#include "worker_rig.h"

#define GREEDY 8
#define CHECKS 1000
/* What a turn decides beyond WEIR_TURN_MAX: what was gathered last, by two rounds and a poll. */
#define TURN_ROOM (3 * WEIR_GATHER_MAX)

static const char *const api = "version: 1\n"
                               "limits:\n"
                               "  - { name: api, key: [client.ip], algorithm: gcra,\n"
                               "      rate: 1/h burst 100000, on_store_error: closed }\n";

static const char one[] = "POST /v1/check HTTP/1.1\r\nHost: a\r\nContent-Length: 18\r\n\r\n"
                          "{\"ip\":\"192.0.2.1\"}";

/* A request with a batch of so many checks; the caller frees it. */
static char *batch_text(int checks, const char *last)
{
    size_t size = (size_t)checks * 20 + strlen(last) + 3;
    char *body = malloc(size), *text = malloc(size + 128);
    if (!body)
        abort(); /* which gcc 14 knows to end the test */
    if (!text)
        abort(); /* which gcc 14 knows to end the test */
    char *at = body;
    *at++ = '[';
    for (int i = 0; i < checks; i++)
        at += sprintf(at, "%s{\"ip\":\"192.0.2.1\"}", i ? "," : "");
    at += sprintf(at, "%s]", last);
    sprintf(text, "POST /v1/check HTTP/1.1\r\nHost: a\r\nContent-Length: %zu\r\n\r\n%s",
            (size_t)(at - body), body);
    free(body);
    return text;
}

static struct rig *open_at_once(void)
{
    struct rig *rig = rig_open(api);
    rig->store->later_every = 0;
    return rig;
}

static uint64_t decided(const struct rig *rig)
{
    return atomic_load(&rig->worker->counters.decisions);
}

/* Decisions of the longest turn until all `replies` are there, of connections that send `text`. */
static uint64_t longest_turn(struct rig *rig, const char *text, unsigned replies)
{
    int fds[GREEDY];
    uint64_t longest = 0, before = decided(rig);
    for (int i = 0; i < GREEDY; i++) {
        fds[i] = client_open(rig);
        client_send(fds[i], text);
    }
    for (int steps = 0; steps < 5000 && count_of(rig, "HTTP/1.1 200 ") < replies; steps++) {
        step(rig);
        uint64_t now = decided(rig);
        longest = now - before > longest ? now - before : longest;
        before = now;
        for (int i = 0; i < GREEDY; i++)
            client_read(rig, fds[i]);
    }
    assert_int_equal(count_of(rig, "HTTP/1.1 200 "), replies);
    for (int i = 0; i < GREEDY; i++)
        close(fds[i]);
    run_until_no_connection(rig);
    assert_int_equal(rig->state->taken, 0);
    assert_int_equal(rig->state->held, 0);
    assert_int_equal(rig->state->pieces.begun, 0);
    assert_int_equal(rig->state->pieces.promised, 0);
    assert_int_equal(rig->worker->buffers.used_bytes, 0);
    return longest;
}

TEST("long batches share turns")
{
    struct rig *rig = open_at_once();
    char *text = batch_text(300, "");
    assert_in_range(longest_turn(rig, text, GREEDY), 1, WEIR_TURN_MAX + TURN_ROOM);
    assert_int_equal(decided(rig), GREEDY * 300);
    free(text);
    rig_close(rig);
}

TEST("pipelined requests share turns")
{
    struct rig *rig = open_at_once();
    char *text = malloc(sizeof one * 250 + 1);
    assert_non_null(text);
    for (size_t i = 0; i < 250; i++)
        memcpy(text + i * (sizeof one - 1), one, sizeof one);
    assert_in_range(longest_turn(rig, text, GREEDY * 250), 1, WEIR_TURN_MAX + TURN_ROOM);
    assert_int_equal(decided(rig), GREEDY * 250);
    free(text);
    rig_close(rig);
}

/* The batches of all others are read; then one client asks, and is answered in the next turn but
 * one, before any batch is. */
TEST("one request waits for a turn and not for the batches")
{
    struct rig *rig = open_at_once();
    int fds[GREEDY], fd = client_open(rig);
    char *text = batch_text(CHECKS, "");
    for (int i = 0; i < GREEDY; i++) {
        fds[i] = client_open(rig);
        client_send(fds[i], text);
    }
    while (!rig->state->pieces.begun)
        step(rig);
    uint64_t before = decided(rig);
    client_send(fd, one);
    for (int turns = 0; turns < 2; turns++)
        step(rig);
    client_read(rig, fd);
    assert_int_equal(count_of(rig, "HTTP/1.1 200 "), 1);
    assert_in_range(decided(rig) - before, 1, 2 * (WEIR_TURN_MAX + TURN_ROOM));
    for (int i = 0; i < GREEDY; i++)
        client_reset(fds[i]);
    close(fd);
    run_until_no_connection(rig);
    assert_int_equal(rig->state->taken, 0);
    assert_int_equal(rig->state->pieces.begun, 0);
    assert_int_equal(rig->state->pieces.promised, 0);
    free(text);
    rig_close(rig);
}

/* However far a batch has come when its client goes away, nothing of it is left. */
TEST("a client may leave between any two pieces")
{
    char *text = batch_text(CHECKS, "");
    for (int steps = 0; steps < 12; steps++) {
        struct rig *rig = open_at_once();
        rig->store->later_every = steps % 2 ? 3 : 0; /* some decisions stay at the store */
        int fds[3];
        for (int i = 0; i < 3; i++) {
            fds[i] = client_open(rig);
            client_send(fds[i], text);
        }
        while (!rig->state->pieces.begun)
            step(rig);
        for (int i = 0; i < steps / 2; i++)
            uv_run(rig->worker->loop, UV_RUN_NOWAIT);
        for (int i = 0; i < 3; i++)
            client_reset(fds[i]);
        run_until_no_connection(rig);
        assert_int_equal(rig->state->taken, 0);
        assert_int_equal(rig->state->held, 0);
        assert_int_equal(rig->state->pieces.begun, 0);
        assert_int_equal(rig->state->pieces.promised, 0);
        assert_int_equal(rig->worker->buffers.used_bytes, 0);
        int fd = client_open(rig);
        rig->store->later_every = 0;
        client_send(fd, one);
        run_until(rig, fd, "HTTP/1.1 200 ", 1);
        close(fd);
        run_until_no_connection(rig);
        rig_close(rig);
    }
    free(text);
}

TEST("an error in the last piece charges nothing")
{
    struct rig *rig = open_at_once();
    char *text = batch_text(CHECKS - 1, ",{\"ip\":\"nowhere\"}");
    int fd = client_open(rig);
    client_send(fd, text);
    run_until(rig, fd, "HTTP/1.1 400 ", 1);
    assert_non_null(strstr(rig->received, "[999] ip: not an IP address"));
    assert_int_equal(decided(rig), 0);
    client_send(fd, one); /* the connection continues */
    run_until(rig, fd, "\"remaining\":99999,", 1);
    close(fd);
    free(text);
    run_until_no_connection(rig);
    assert_int_equal(rig->state->taken, 0);
    rig_close(rig);
}

TEST("a long body without a check is an empty array")
{
    struct rig *rig = open_at_once();
    int fd = client_open(rig);
    char text[2 * WEIR_BATCH_SMALL];
    int size = sprintf(text, "POST /v1/check HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n",
                       WEIR_BATCH_SMALL + 2);
    memset(text + size, ' ', WEIR_BATCH_SMALL);
    strcpy(text + size + WEIR_BATCH_SMALL, "[]");
    client_send(fd, text);
    run_until(rig, fd, "\r\n\r\n[]", 1);
    close(fd);
    run_until_no_connection(rig);
    rig_close(rig);
}

/* Replies keep their order, also behind a long batch whose decisions are at the store. */
TEST("what follows a long batch waits for it")
{
    struct rig *rig = rig_open(api);
    char *text = batch_text(300, "");
    int fd = client_open(rig);
    client_send(fd, text);
    client_send(fd, one);
    run_until_pending(rig, 300); /* and not the one behind it */
    client_read(rig, fd);
    assert_int_equal(rig->received_size, 0);
    while (rig->store->pending_count)
        fake_store_answer(rig->store, rig->store->pending_count - 1);
    run_until_pending(rig, 1);
    fake_store_answer(rig->store, 0);
    run_until(rig, fd, "HTTP/1.1 200 ", 2);
    assert_int_equal(count_of(rig, "\"remaining\":"), 301);
    close(fd);
    run_until_no_connection(rig);
    assert_int_equal(rig->state->taken, 0);
    free(text);
    rig_close(rig);
}

RUN_TESTS()
