/* SPDX-License-Identifier: Apache-2.0 */
/* see worker_rig.h */
#include "worker_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/daemon/clock.h"
#include "server/http/front.h"
#include "server/resp/front.h"
#include "table/table.h"

int rig_prepare(void *context, struct weir_limit *limit, const char *name)
{
    struct fake_store *store = context;
    struct weir_reason reason;
    (void)name;
    return weir_store_prepare(&store->base, NULL, limit, &reason);
}

struct weir_rules *rig_parse(const char *text)
{
    struct weir_rules *rules = NULL;
    struct weir_problems problems = {0};
    assert_int_equal(weir_rules_parse(&rules, "test", ".", text, strlen(text), &problems), 0);
    weir_problems_free(&problems);
    weir_problems_free(&problems);
    return rules;
}

static struct rig *open_worker(const char *rules, uint64_t deadline_ns)
{
    struct rig *rig = calloc(1, sizeof *rig);
    struct weir_reason reason = {{0}};
    assert_non_null(rig);
    weir_log_init(&rig->log, STDERR_FILENO, WEIR_LOG_TEXT);
    const struct weir_table_options table = {.bytes = WEIR_TABLE_BYTES_MIN,
                                             .wall_ns = weir_clock_wall_ns(),
                                             .boot_ns = weir_clock_boot_ns()};
    assert_int_equal(weir_table_open(&rig->table, &table, &reason), 0);
    rig->rules = rig_parse(rules);
    rig->store = fake_store_open();
    rig->store->later_every = 1;
    assert_int_equal(weir_rules_prepare(rig->rules, rig_prepare, rig->store), 0);
    const struct weir_worker_options worker = {.log = &rig->log,
                                               .table = rig->table,
                                               .store = &rig->store->base,
                                               .rules = rig->rules,
                                               .deadline_ns = deadline_ns};
    assert_int_equal(weir_worker_open(&rig->worker, &worker, &reason), 0);
    rig->state = weir_worker_state_of(rig->worker);
    return rig;
}

static void listen_with(struct rig *rig, const struct weir_front *front, void *server)
{
    struct weir_reason reason = {{0}};
    int fd;
    assert_int_equal(weir_endpoint_parse(&rig->endpoint, "127.0.0.1:0", &reason), 0);
    assert_int_equal(weir_endpoint_bind(&rig->endpoint, &fd, 1, &reason), 0);
    rig->pool = (struct weir_connection_pool){.max = 64, .refusals = 8};
    const struct weir_listening listening = {front, &rig->endpoint, &rig->pool, server};
    assert_int_equal(weir_worker_listen(rig->worker, &listening, fd, &reason), 0);
}

struct rig *rig_open_deadline(const char *rules, uint64_t deadline_ns)
{
    struct rig *rig = open_worker(rules, deadline_ns);
    listen_with(rig, &weir_http_front, NULL);
    return rig;
}

#define LONG_NS UINT64_C(3600000000000)

struct rig *rig_open(const char *rules)
{
    return rig_open_deadline(rules, LONG_NS);
}

struct rig *rig_open_front(const char *rules, const struct weir_front *front, void *server)
{
    struct rig *rig = open_worker(rules, LONG_NS);
    listen_with(rig, front, server);
    return rig;
}

struct rig *rig_open_redis(const char *rules)
{
    struct rig *rig = open_worker(rules, LONG_NS);
    rig->redis.workers = &rig->worker;
    rig->redis.worker_count = 1;
    assert_int_equal(weir_adhoc_limits_open(&rig->redis.limits, 16, NULL, 0), 0);
    listen_with(rig, &weir_resp_front, &rig->redis);
    struct weir_resp_workspace *redis = rig->state->listeners[0].workspace;
    redis->remote = true;
    return rig;
}

void rig_close(struct rig *rig)
{
    weir_worker_close(rig->worker); /* closes the store too */
    weir_adhoc_limits_close(rig->redis.limits);
    weir_table_close(rig->table);
    weir_rules_unref(rig->rules);
    free(rig);
}

void step(struct rig *rig)
{
    uv_run(rig->worker->loop, UV_RUN_ONCE);
}

int client_open(struct rig *rig)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, &rig->endpoint.any, rig->endpoint.size), 0);
    return fd;
}

void client_send(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), 0), strlen(text));
}

bool client_read(struct rig *rig, int fd)
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

void client_reset(int fd)
{
    const struct linger reset = {.l_onoff = 1};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    close(fd);
}

unsigned count_of(const struct rig *rig, const char *text)
{
    unsigned count = 0;
    for (const char *at = rig->received; (at = strstr(at, text)); at++)
        count++;
    return count;
}

void run_until_pending(struct rig *rig, uint32_t count)
{
    for (int i = 0; i < STEPS_MAX && rig->store->pending_count < count; i++)
        step(rig);
    assert_int_equal(rig->store->pending_count, count);
}

void run_until(struct rig *rig, int fd, const char *text, unsigned count)
{
    for (int i = 0; i < STEPS_MAX && count_of(rig, text) < count; i++) {
        step(rig);
        client_read(rig, fd);
    }
    assert_int_equal(count_of(rig, text), count);
}

void run_until_no_connection(struct rig *rig)
{
    for (int i = 0; i < STEPS_MAX && rig->state->all; i++)
        step(rig);
    assert_null(rig->state->all);
    assert_int_equal(rig->state->taken, 0);
    assert_int_equal(rig->worker->buffers.used_bytes, 0);
}
