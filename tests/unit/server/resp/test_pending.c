/* SPDX-License-Identifier: Apache-2.0 */
/* The Redis protocol over a store that answers later: replies keep the order of the commands, also
 * of those that work on states, and the store's failure is reported in words. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "test.h"
#include "worker_rig.h"

static const char *const rules = "version: 1\n"
                                 "limits:\n"
                                 "  - { name: api, key: [client.ip], algorithm: gcra,\n"
                                 "      rate: 10/h }\n";

static void ask(int fd, const char *commands)
{
    client_send(fd, commands); /* inline commands */
}

static void answer_all(struct rig *rig)
{
    while (rig->store->pending_count > 0)
        fake_store_answer(rig->store, rig->store->pending_count - 1);
}

/* Answers whatever comes until `size` bytes were received. */
static void run_until_size(struct rig *rig, int fd, size_t size)
{
    for (int i = 0; i < STEPS_MAX && rig->received_size < size; i++) {
        step(rig);
        answer_all(rig);
        client_read(rig, fd);
    }
}

TEST("replies keep the order of the commands")
{
    struct rig *rig = rig_open_redis(rules);
    int fd = client_open(rig);
    ask(fd, "CL.THROTTLE k 9 10 60\r\nEXISTS k none\r\nPING\r\nDEL k none k\r\nTTL k\r\n"
            "WEIR.RESET ip 192.0.2.1\r\n");
    run_until_pending(rig, 5);
    client_read(rig, fd);
    assert_int_equal(rig->received_size, 0); /* not even PONG, which was known at once */
    for (int i = 0; i < 5; i++) {            /* in the order in which the store was asked */
        fake_store_answer(rig->store, 0);
        step(rig);
    }
    const char *expected =
        "*5\r\n:0\r\n:10\r\n:9\r\n:-1\r\n:6\r\n:1\r\n+PONG\r\n:1\r\n:-2\r\n:0\r\n";
    run_until_size(rig, fd, strlen(expected));
    assert_string_equal(rig->received, expected);
    close(fd);
    run_until_no_connection(rig);
    rig_close(rig);
}

TEST("the store is given texts that tell keys apart")
{
    struct rig *rig = rig_open_redis(rules);
    int fd = client_open(rig);
    char command[512], long_key[301];
    memset(long_key, 'k', sizeof long_key - 1);
    long_key[sizeof long_key - 1] = '\0';
    snprintf(command, sizeof command, "CL.THROTTLE %s 9 10 60\r\n", long_key);
    ask(fd, "CL.THROTTLE k 9 10 60\r\nSELECT 3\r\nINCREX k UBOUND 5 EX 60 ENX\r\nTTL k\r\n");
    ask(fd, command);
    run_until_pending(rig, 4);
    static const char *const texts[] = {"b0:k", "w3:k", "b3:k", "b3#"};
    for (uint32_t i = 0; i < 4; i++) {
        const struct weir_check *check = &rig->store->pending[i]->checks[0];
        size_t size = strlen(texts[i]);
        assert_int_equal(check->key.size, i < 3 ? size : size + 64);
        assert_memory_equal(check->key.data, texts[i], size);
        assert_non_null(check->limit);
        assert_null(check->limit->name);
    }
    const struct weir_check *window = &rig->store->pending[2]->checks[1]; /* TTL asks for both */
    assert_memory_equal(window->key.data, "w3:k", 4);
    assert_int_equal(window->limit->spec.algorithm, WEIR_FIXED_WINDOW);
    answer_all(rig);
    run_until_size(rig, fd, 1);
    close(fd);
    run_until_no_connection(rig);
    rig_close(rig);
}

TEST("the failure of the store is an error of the operation")
{
    struct rig *rig = rig_open_redis(rules);
    int fd = client_open(rig);
    ask(fd, "TTL k\r\nDEL k\r\nWEIR.RESET ip 192.0.2.1\r\nPING\r\n");
    run_until_pending(rig, 3);
    while (rig->store->pending_count > 0)
        fake_store_fail(rig->store, 0, WEIR_ERR_STORE);
    run_until(rig, fd, "+PONG\r\n", 1);
    assert_int_equal(count_of(rig, "-ERR store: the store did not answer\r\n"), 3);
    close(fd);
    run_until_no_connection(rig);
    rig_close(rig);
}

/* More keys than one decision takes. */
TEST("many keys are one reply")
{
    struct rig *rig = rig_open_redis(rules);
    int fd = client_open(rig);
    char command[4096] = "EXISTS";
    rig->store->later_every = 0;
    for (int i = 0; i < 100; i++) {
        char text[64];
        snprintf(text, sizeof text, " key%d", i);
        strcat(command, text);
        if (i % 3 == 0) {
            snprintf(text, sizeof text, "CL.THROTTLE key%d 9 10 60\r\n", i);
            ask(fd, text);
        }
    }
    run_until(rig, fd, "*5\r\n", 34);
    rig->received_size = 0;
    rig->received[0] = '\0';
    rig->store->later_every = 1;
    strcat(command, "\r\n");
    ask(fd, command);
    run_until_pending(rig, 7);
    answer_all(rig);
    run_until(rig, fd, ":34\r\n", 1);
    ask(fd, "PING\r\n");
    run_until(rig, fd, "+PONG\r\n", 1);
    close(fd);
    run_until_no_connection(rig);
    rig_close(rig);
}

TEST("a client that goes away leaves nothing but what it asked to forget")
{
    struct rig *rig = rig_open_redis(rules);
    int fd = client_open(rig);
    ask(fd, "CL.THROTTLE k 9 10 60\r\nDEL k\r\nCL.THROTTLE k 9 10 60\r\n");
    run_until_pending(rig, 3);
    client_reset(fd);
    run_until_no_connection(rig);
    assert_int_equal(rig->store->pending_count, 1); /* DEL is done all the same */
    assert_int_equal(rig->store->pending[0]->op, WEIR_OP_RESET);
    fake_store_answer(rig->store, 0);
    assert_int_equal(weir_engine_pending(rig->worker->engine), 0);
    rig_close(rig);
}

RUN_TESTS()
