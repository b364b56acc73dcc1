/* A worker and its connections over a store that answers late, out of order, or never: replies stay
 * in order, deadlines are kept, and a client that goes away leaves nothing behind.
 *
 * The worker's loop runs in this thread, a step at a time; the client is a socket that does not
 * block. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "fake_store.h"
#include "server/clock.h"
#include "server/http.h"

/* Steps of the loop that are more than enough for anything here; each waits for at most a tick. */
#define STEPS_MAX 400

struct rig {
    struct weir_log log;
    struct weir_table *table;
    struct weir_rules *rules;
    struct fake_store *store;
    struct weir_worker worker;
    struct weir_endpoint endpoint;
    char received[1 << 20];
    size_t received_size;
};

static int prepare(void *context, struct weir_limit *limit, const char *name)
{
    struct fake_store *store = context;
    (void)name;
    struct weir_reason reason;
    return store->base.ops->prepare(&store->base, limit, &reason);
}

static struct weir_rules *parse(const char *text)
{
    struct weir_rules *rules = NULL;
    struct weir_problems problems = {0};
    assert_int_equal(weir_rules_parse(&rules, "test", ".", text, strlen(text), &problems), 0);
    weir_problems_free(&problems);
    return rules;
}

static struct rig *rig_open_deadline(const char *rules, uint64_t deadline_ns)
{
    struct rig *rig = calloc(1, sizeof *rig);
    struct weir_reason reason = {{0}};
    int fd;
    assert_non_null(rig);
    weir_log_init(&rig->log, STDERR_FILENO, WEIR_LOG_TEXT);
    const struct weir_table_options table = {.bytes = WEIR_TABLE_BYTES_MIN,
                                             .wall_ns = weir_clock_wall_ns(),
                                             .boot_ns = weir_clock_boot_ns()};
    assert_int_equal(weir_table_open(&rig->table, &table, &reason), 0);
    rig->rules = parse(rules);
    rig->store = fake_store_open();
    rig->store->later_every = 1;
    assert_int_equal(weir_rules_prepare(rig->rules, prepare, rig->store), 0);
    const struct weir_worker_options worker = {.log = &rig->log,
                                               .table = rig->table,
                                               .store = &rig->store->base,
                                               .rules = rig->rules,
                                               .deadline_ns = deadline_ns,
                                               .connections_max = 16};
    assert_int_equal(weir_worker_open(&rig->worker, &worker, &reason), 0);
    assert_int_equal(weir_endpoint_parse(&rig->endpoint, "127.0.0.1:0", &reason), 0);
    assert_int_equal(weir_endpoint_bind(&rig->endpoint, &fd, 1, &reason), 0);
    assert_int_equal(weir_worker_listen(&rig->worker, &weir_http_front, WEIR_LISTENER_HTTP,
                                        &rig->endpoint, fd, NULL, &reason),
                     0);
    return rig;
}

/* With a deadline that a slow machine does not meet by chance. */
static struct rig *rig_open(const char *rules)
{
    return rig_open_deadline(rules, UINT64_C(3600000000000));
}

static void rig_close(struct rig *rig)
{
    weir_worker_close(&rig->worker); /* closes the store too */
    weir_table_close(rig->table);
    weir_rules_unref(rig->rules);
    free(rig);
}

/* One step of the loop; the wheel's tick bounds how long it waits. */
static void step(struct rig *rig)
{
    uv_run(&rig->worker.loop, UV_RUN_ONCE);
}

static int client_open(struct rig *rig)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, &rig->endpoint.any, rig->endpoint.size), 0);
    return fd;
}

static void client_send(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), 0), strlen(text));
}

static void client_check(int fd, int cost)
{
    char body[64], text[256];
    int size = snprintf(body, sizeof body, "{\"ip\":\"192.0.2.1\",\"cost\":%d}", cost);
    snprintf(text, sizeof text,
             "POST /v1/check HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", size, body);
    client_send(fd, text);
}

/* Reads what has come, without waiting. Returns false at the end of the stream. */
static bool client_read(struct rig *rig, int fd)
{
    for (;;) {
        ssize_t n = recv(fd, rig->received + rig->received_size,
                         sizeof rig->received - 1 - rig->received_size, MSG_DONTWAIT);
        if (n <= 0)
            return n != 0;
        rig->received_size += (size_t)n;
        rig->received[rig->received_size] = 0;
    }
}

static unsigned count_of(const struct rig *rig, const char *text)
{
    unsigned count = 0;
    for (const char *at = rig->received; (at = strstr(at, text)); at++)
        count++;
    return count;
}

static void run_until_pending(struct rig *rig, uint32_t count)
{
    for (int i = 0; i < STEPS_MAX && rig->store->pending_count < count; i++)
        step(rig);
    assert_int_equal(rig->store->pending_count, count);
}

static void run_until_replies(struct rig *rig, int fd, unsigned count)
{
    for (int i = 0; i < STEPS_MAX && count_of(rig, "HTTP/1.1 ") < count; i++) {
        step(rig);
        client_read(rig, fd);
    }
    assert_int_equal(count_of(rig, "HTTP/1.1 "), count);
}

static void run_until_no_connection(struct rig *rig)
{
    for (int i = 0; i < STEPS_MAX && rig->worker.all; i++)
        step(rig);
    assert_null(rig->worker.all);
    assert_int_equal(rig->worker.taken, 0);
    assert_int_equal(rig->worker.buffers.used_bytes, 0);
}

static const char *const api = "version: 1\n"
                               "limits:\n"
                               "  - { name: api, key: [client.ip], algorithm: gcra,\n"
                               "      rate: 1/h burst 100, on_store_error: closed }\n";

static void late_answers_out_of_order_are_written_in_the_order_of_requests(void **state)
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

static void a_batch_waits_for_its_last_decision(void **state)
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

static void what_the_store_never_answers_is_settled_at_its_deadline(void **state)
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

static void a_client_that_goes_away_cancels_what_it_waits_for(void **state)
{
    struct rig *rig = rig_open(api);
    int fd = client_open(rig);
    for (int i = 0; i < 50; i++)
        client_check(fd, 1);
    run_until_pending(rig, 50);
    const struct linger reset = {.l_onoff = 1};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    close(fd);
    run_until_no_connection(rig);
    assert_int_equal(weir_engine_pending(rig->worker.engine), 0);
    fd = client_open(rig);
    rig->store->later_every = 0;
    client_check(fd, 1);
    run_until_replies(rig, fd, 1);
    close(fd);
    rig_close(rig);
}

static void more_than_may_be_owed_waits_unread_and_nothing_is_lost(void **state)
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

static void draining_waits_for_the_answer_and_closes_behind_it(void **state)
{
    struct rig *rig = rig_open(api);
    int fd = client_open(rig), idle = client_open(rig);
    client_check(fd, 1);
    run_until_pending(rig, 1);
    weir_worker_drain(&rig->worker);
    step(rig);
    assert_true(rig->worker.draining);
    fake_store_answer(rig->store, 0);
    run_until_replies(rig, fd, 1);
    run_until_no_connection(rig);
    assert_false(client_read(rig, fd));
    close(fd);
    close(idle);
    rig_close(rig);
}

static void new_rules_hold_from_the_next_turn_and_old_decisions_keep_theirs(void **state)
{
    struct rig *rig = rig_open(api);
    int fd = client_open(rig);
    client_check(fd, 1);
    run_until_pending(rig, 1);
    struct weir_rules *rules = parse("version: 1\nlimits:\n  - { name: other, key: [client.ip],\n"
                                     "      rate: 7/h }\n");
    assert_int_equal(weir_rules_prepare(rules, prepare, rig->store), 0);
    weir_worker_set_rules(&rig->worker, rules);
    weir_rules_unref(rules);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(late_answers_out_of_order_are_written_in_the_order_of_requests),
        cmocka_unit_test(a_batch_waits_for_its_last_decision),
        cmocka_unit_test(what_the_store_never_answers_is_settled_at_its_deadline),
        cmocka_unit_test(a_client_that_goes_away_cancels_what_it_waits_for),
        cmocka_unit_test(more_than_may_be_owed_waits_unread_and_nothing_is_lost),
        cmocka_unit_test(draining_waits_for_the_answer_and_closes_behind_it),
        cmocka_unit_test(new_rules_hold_from_the_next_turn_and_old_decisions_keep_theirs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
