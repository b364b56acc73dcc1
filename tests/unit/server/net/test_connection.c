/* SPDX-License-Identifier: Apache-2.0 */
/* A worker and its connections over a store that answers late, out of order, or never: replies stay
 * in order, deadlines are kept, and a client that goes away leaves nothing behind.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "server/daemon/clock.h"
#include "server/net/guesses.h"
#include "test.h"
#include "worker_rig.h"

static void client_check(int fd, int cost)
{
    char body[64], text[256];
    int size = snprintf(body, sizeof body, "{\"ip\":\"192.0.2.1\",\"cost\":%d}", cost);
    snprintf(text, sizeof text,
             "POST /v1/check HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", size, body);
    client_send(fd, text);
}

static void run_until_replies(struct rig *rig, int fd, unsigned count)
{
    run_until(rig, fd, "HTTP/1.1 ", count);
}

static const char *const api = "version: 1\n"
                               "limits:\n"
                               "  - { name: api, key: [client.ip], algorithm: gcra,\n"
                               "      rate: 1/h burst 100, on_store_error: closed }\n";

TEST("late answers out of order are written in the order of requests")
{
    struct rig *rig = rig_open(api);
    int fd = client_open(rig);
    for (int cost = 1; cost <= 4; cost++)
        client_check(fd, cost);
    client_send(fd, "GET /nowhere HTTP/1.1\r\nHost: a\r\n\r\n");
    run_until_pending(rig, 4);
    client_read(rig, fd);
    assert_int_equal(rig->received_size, 0); /* not even the 404, which was known at once */
    fake_store_answer(rig->store, 3);        /* cost 4: 96 left */
    fake_store_answer(rig->store, 1);        /* cost 2: 94 */
    fake_store_answer(rig->store, 1);        /* cost 3: 91 */
    fake_store_answer(rig->store, 0);        /* cost 1: 90 */
    run_until_replies(rig, fd, 5);
    const char *at = rig->received;
    static const char *const order[] = {"\"remaining\":90,", "\"remaining\":94,",
                                        "\"remaining\":91,", "\"remaining\":96,", "HTTP/1.1 404 "};
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        at = strstr(at, order[i]);
        assert_non_null(at);
    }
    close(fd);
    run_until_no_connection(rig);
    rig_close(rig);
}

TEST("a batch waits for its last decision")
{
    struct rig *rig = rig_open(api);
    int fd = client_open(rig);
    const char *body = "[{\"ip\":\"192.0.2.1\",\"cost\":1},{\"ip\":\"192.0.2.1\",\"cost\":2},"
                       "{\"ip\":\"192.0.2.1\",\"cost\":3}]";
    char text[512];
    snprintf(text, sizeof text,
             "POST /v1/check HTTP/1.1\r\nHost: a\r\nContent-Length: %zu\r\n\r\n%s", strlen(body),
             body);
    client_send(fd, text);
    run_until_pending(rig, 3);
    fake_store_answer(rig->store, 2);
    fake_store_answer(rig->store, 0);
    assert_int_equal(rig->store->pending_count, 1);
    fake_store_answer(rig->store, 0);
    run_until_replies(rig, fd, 1);
    const char *first = strstr(rig->received, "\"remaining\":96");
    assert_non_null(first); /* cost 1, decided second */
    const char *second = strstr(first, "\"remaining\":94");
    assert_non_null(second);
    assert_non_null(strstr(second, "\"remaining\":97"));
    close(fd);
    run_until_no_connection(rig);
    rig_close(rig);
}

TEST("what the store never answers is settled at its deadline")
{
    struct rig *rig = rig_open_deadline(api, 20000000);
    int fd = client_open(rig);
    client_check(fd, 1);
    uint64_t began_ns = weir_clock_boot_ns();
    run_until_replies(rig, fd, 1);
    assert_true(weir_clock_boot_ns() - began_ns >= 20000000);
    assert_non_null(strstr(rig->received, "HTTP/1.1 503 "));
    assert_non_null(strstr(rig->received, "temporary-reduced-capacity"));
    close(fd);
    run_until_no_connection(rig);
    rig_close(rig);
}

TEST("a client that goes away cancels what it waits for")
{
    struct rig *rig = rig_open(api);
    int fd = client_open(rig);
    for (int i = 0; i < 50; i++)
        client_check(fd, 1);
    run_until_pending(rig, 50);
    client_reset(fd);
    run_until_no_connection(rig);
    assert_int_equal(weir_engine_pending(rig->worker->engine), 0);
    fd = client_open(rig);
    rig->store->later_every = 0;
    client_check(fd, 1);
    run_until_replies(rig, fd, 1);
    close(fd);
    rig_close(rig);
}

TEST("more than may be owed waits unread and nothing is lost")
{
    struct rig *rig = rig_open(api);
    int fd = client_open(rig);
    for (int i = 0; i < 1000; i++)
        client_check(fd, 0);
    unsigned most = 0;
    for (int i = 0; i < 20000 && count_of(rig, "HTTP/1.1 200 ") < 1000; i++) {
        step(rig);
        if (rig->store->pending_count > most)
            most = rig->store->pending_count;
        while (rig->store->pending_count)
            fake_store_answer(rig->store, rig->store->pending_count - 1);
        client_read(rig, fd);
    }
    assert_int_equal(count_of(rig, "HTTP/1.1 200 "), 1000);
    assert_true(most <= WEIR_OWED_MAX);
    close(fd);
    run_until_no_connection(rig);
    rig_close(rig);
}

/* With all decisions of the worker at the store nobody is served, but the loop continues, so that
 * deadlines are kept and answers come. */
TEST("when all decisions are at the store connections wait")
{
    enum { CLIENTS = 32, EACH = 120 }; /* below what one connection may be owed */
    struct rig *rig = rig_open(api);
    int fds[CLIENTS];
    unsigned answered = 0;
    for (int i = 0; i < CLIENTS; i++) {
        fds[i] = client_open(rig);
        for (int n = 0; n < EACH; n++)
            client_check(fds[i], 0);
    }
    for (int i = 0; i < STEPS_MAX && rig->store->pending_count + WEIR_BATCH_MAX <= WEIR_DECISIONS;
         i++)
        step(rig);
    assert_non_null(rig->state->stalled.first);
    assert_true(rig->store->pending_count + WEIR_BATCH_MAX > WEIR_DECISIONS);
    for (int i = 0; i < 3; i++)
        step(rig); /* each of them ends */
    for (int i = 0; i < 20000 && answered < CLIENTS * EACH; i++) {
        while (rig->store->pending_count > 0)
            fake_store_answer(rig->store, rig->store->pending_count - 1);
        step(rig);
        for (int n = 0; n < CLIENTS; n++)
            client_read(rig, fds[n]);
        answered += count_of(rig, "HTTP/1.1 200 ");
        rig->received_size = 0;
        rig->received[0] = '\0';
    }
    assert_in_range(answered, CLIENTS * EACH - CLIENTS, CLIENTS * EACH); /* some heads were cut */
    for (int i = 0; i < CLIENTS; i++)
        close(fds[i]);
    run_until_no_connection(rig);
    rig_close(rig);
}

TEST("draining waits for the answer and closes behind it")
{
    struct rig *rig = rig_open(api);
    int fd = client_open(rig), idle = client_open(rig);
    client_check(fd, 1);
    run_until_pending(rig, 1);
    weir_worker_drain(rig->worker);
    step(rig);
    assert_true(rig->worker->draining);
    fake_store_answer(rig->store, 0);
    run_until_replies(rig, fd, 1);
    run_until_no_connection(rig);
    assert_false(client_read(rig, fd));
    close(fd);
    close(idle);
    rig_close(rig);
}

static const char *const other = "version: 1\n"
                                 "limits:\n"
                                 "  - { name: other, key: [client.ip], rate: 7/h }\n";

static void hand_over(struct rig *rig, const char *text)
{
    struct weir_rules *rules = rig_parse(text);
    assert_int_equal(weir_rules_prepare(rules, rig_prepare, rig->store), 0);
    weir_worker_set_rules(rig->worker, rules);
    weir_rules_unref(rules);
}

TEST("new rules hold from the next turn and old decisions keep theirs")
{
    struct rig *rig = rig_open(api);
    int fd = client_open(rig);
    client_check(fd, 1);
    run_until_pending(rig, 1);
    hand_over(rig, other);
    step(rig);
    fake_store_answer(rig->store, 0);
    rig->store->later_every = 0;
    run_until_replies(rig, fd, 1);
    assert_non_null(strstr(rig->received, "\"name\":\"api\""));
    client_check(fd, 1);
    run_until_replies(rig, fd, 2);
    assert_non_null(strstr(rig->received, "\"name\":\"other\""));
    close(fd);
    rig_close(rig);
}

/* The loop sees the request before the wake: what counts is that it is read later. */
TEST("what is read once there are new rules comes under them")
{
    struct rig *rig = rig_open(api);
    int fd = client_open(rig);
    rig->store->later_every = 0;
    client_check(fd, 1);
    run_until_replies(rig, fd, 1);
    client_check(fd, 1);
    hand_over(rig, other);
    run_until_replies(rig, fd, 2);
    assert_non_null(strstr(rig->received, "\"name\":\"other\""));
    close(fd);
    rig_close(rig);
}

static const char *const slots = "version: 1\n"
                                 "limits:\n"
                                 "  - { name: slots, key: [client.ip], algorithm: concurrency,\n"
                                 "      limit: 1, life: 1h, on_store_error: local }\n";

static void client_release(int fd, const char *lease, size_t size)
{
    char text[512];
    snprintf(text, sizeof text,
             "POST /v1/release HTTP/1.1\r\nHost: a\r\nContent-Length: %zu\r\n\r\n"
             "{\"lease\":\"%.*s\"}",
             size + sizeof "{\"lease\":\"\"}" - 1, (int)size, lease);
    client_send(fd, text);
}

/* The end of a lease has its place among the replies, and the store's failure is reported as one,
 * whatever the rules say of it. */
TEST("an end of a lease waits for the store in its place")
{
    struct rig *rig = rig_open(slots);
    int fd = client_open(rig);
    char lease[64];
    client_check(fd, 1);
    run_until_pending(rig, 1);
    fake_store_answer(rig->store, 0);
    run_until_replies(rig, fd, 1);
    const char *at = strstr(rig->received, "\"lease\":\"");
    assert_non_null(at);
    assert_int_equal(sscanf(at, "\"lease\":\"%63[^\"]", lease), 1);
    client_check(fd, 1);
    client_release(fd, lease, strlen(lease));
    client_check(fd, 1);
    client_release(fd, lease, strlen(lease));
    client_release(fd, lease, strlen(lease));
    run_until_pending(rig, 5);
    fake_store_fail(rig->store, 4, WEIR_ERR_STORE);
    fake_store_answer(rig->store, 0); /* denied: the slot is taken */
    for (int i = 0; i < 3; i++)
        fake_store_answer(rig->store, 0);
    run_until_replies(rig, fd, 6);
    at = rig->received;
    static const char *const order[] = {
        "HTTP/1.1 200 ", "HTTP/1.1 429 ", "HTTP/1.1 200 ", "released\":true",
        "HTTP/1.1 200 ", "HTTP/1.1 404 ", "HTTP/1.1 503 ", "the store did not answer"};
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        at = strstr(at, order[i]);
        assert_non_null(at);
        at++;
    }
    close(fd);
    run_until_no_connection(rig);
    rig_close(rig);
}

TEST("a lease that could not be reported is ended")
{
    struct rig *rig = rig_open(slots);
    int fd = client_open(rig);
    client_check(fd, 1);
    client_check(fd, 1); /* whose answer the first one waits behind when it is answered first */
    run_until_pending(rig, 2);
    fake_store_answer(rig->store, 1);
    client_reset(fd);
    run_until_no_connection(rig);
    run_until_pending(rig, 1); /* the end of the lease that was given */
    fake_store_answer(rig->store, 0);
    assert_int_equal(rig->store->releases, 1);
    assert_int_equal(rig->store->cancels, 1);
    rig_close(rig);
}

/* --- Replies that are held back --------------------------------------------------------------- */

static const char *const guarded = "version: 1\n"
                                   "server: { http: { address: 127.0.0.1:80, token: sesame } }\n"
                                   "limits: []\n";

/* With an address that has guessed so often that its next answer waits for a second. */
static struct rig *rig_open_guarded(struct weir_guesses **guesses)
{
    static const uint64_t secret[2] = {1, 2};
    const struct weir_address peer = {.family = 4, .bytes = {127, 0, 0, 1}};
    struct rig *rig = rig_open(guarded);
    struct weir_guess guess;
    assert_int_equal(weir_guesses_open(guesses, secret), 0);
    for (int i = 0; i <= WEIR_GUESSES_FREE; i++)
        weir_guesses_take(*guesses, &peer, uv_now(rig->worker->loop), false, &guess);
    rig->worker->guesses = *guesses;
    return rig;
}

#define GUESS "GET /v1/auth HTTP/1.1\r\nHost: a\r\nX-Weir-Token: guess\r\n\r\n"

static int guess_until_held(struct rig *rig, const char *text)
{
    int fd = client_open(rig);
    client_send(fd, text);
    for (int i = 0; i < STEPS_MAX && !(rig->state->all && rig->state->all->held); i++)
        step(rig);
    assert_non_null(rig->state->all);
    assert_non_null(rig->state->all->held);
    return fd;
}

TEST("what follows a reply that is held back waits and others go on")
{
    struct weir_guesses *guesses;
    struct rig *rig = rig_open_guarded(&guesses);
    int fd = guess_until_held(rig, GUESS "GET /nowhere HTTP/1.1\r\nHost: a\r\n\r\n");
    const struct weir_connection *held = rig->state->all;
    assert_ptr_equal(held->held, held->last); /* the second is not parsed */
    int second = client_open(rig);
    client_send(second, "GET /nowhere HTTP/1.1\r\nHost: a\r\n\r\n");
    run_until(rig, second, "HTTP/1.1 404 ", 1);
    close(second);
    run_until(rig, fd, "HTTP/1.1 404 ", 2);
    const char *answer = strstr(rig->received, "HTTP/1.1 401 ");
    assert_non_null(answer);
    assert_non_null(strstr(answer, "HTTP/1.1 404 "));
    close(fd);
    run_until_no_connection(rig);
    rig_close(rig);
    weir_guesses_close(guesses);
    (void)state;
}

TEST("a client that goes while its reply is held back leaves nothing")
{
    struct weir_guesses *guesses;
    struct rig *rig = rig_open_guarded(&guesses);
    client_reset(guess_until_held(rig, GUESS GUESS));
    run_until_no_connection(rig);
    int fd = guess_until_held(rig, GUESS "GET /now");
    weir_connection_close(rig->state->all);
    run_until_no_connection(rig);
    close(fd);
    fd = guess_until_held(rig, GUESS);
    rig_close(rig); /* with it */
    close(fd);
    weir_guesses_close(guesses);
    (void)state;
}

TEST("a shutdown waits for a reply that is held back")
{
    struct weir_guesses *guesses;
    struct rig *rig = rig_open_guarded(&guesses);
    int fd = guess_until_held(rig, GUESS);
    weir_worker_drain(rig->worker);
    run_until(rig, fd, "HTTP/1.1 401 ", 1);
    close(fd);
    run_until_no_connection(rig);
    rig_close(rig);
    weir_guesses_close(guesses);
    (void)state;
}

RUN_TESTS()
