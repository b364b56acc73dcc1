/* SPDX-License-Identifier: Apache-2.0 */
/* see store_rig.h */
#include "store_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text/siphash.h"

static void on_guard(uv_timer_t *timer)
{
    (void)timer;
}

static void on_event(void *context, const char *event, const char *text)
{
    struct store_rig *rig = context;
    uint32_t i = rig->event_count++ % STORE_RIG_EVENTS;

    snprintf(rig->events[i], sizeof rig->events[i], "%s %s", event, text);
}

static void on_done(void *context, struct weir_decision *decision, int error)
{
    struct store_rig *rig = context;
    struct rig_decision *its = (struct rig_decision *)(void *)decision;

    assert_false(its->done);
    its->done = true;
    its->error = error;
    rig->finished++;
    if (rig->on_done != NULL)
        rig->on_done(rig, its);
}

void store_rig_fail(struct store_rig *rig, const char *condition, const char *file, int line)
{
    for (uint32_t i = 0; i < rig->event_count && i < STORE_RIG_EVENTS; i++)
        fprintf(stderr, "event: %s\n", rig->events[i]);
    _fail(file, line);
    fprintf(stderr, "did not come true: %s\n", condition);
    abort(); /* _fail does not return */
}

void store_rig_init(struct store_rig *rig)
{
    memset(rig, 0, sizeof *rig);
    rig->now_ns = START;
    assert_int_equal(uv_loop_init(&rig->loop), 0);
    uv_timer_init(&rig->loop, &rig->guard);
    uv_timer_start(&rig->guard, on_guard, 5, 5);
}

void store_rig_start(struct store_rig *rig)
{
    struct weir_reason reason;
    char url[64];

    store_rig_init(rig);
    redis_server_start(&rig->server, NULL);
    snprintf(url, sizeof url, "redis://127.0.0.1:%u", rig->server.port);
    assert_int_equal(redis_url_parse(&rig->url, url, &reason), 0);
}

struct weir_store_redis_options store_rig_options(struct store_rig *rig)
{
    return (struct weir_store_redis_options){
        .loop = &rig->loop,
        .url = &rig->url,
        .deadline_ns = 20 * MS,
        .random_seed = uv_hrtime(),
        .event = on_event,
        .event_context = rig,
    };
}

void store_rig_open(struct store_rig *rig, const struct weir_store_redis_options *options)
{
    struct weir_reason reason;

    assert_int_equal(weir_store_redis_open(&rig->store, options, &reason), 0);
    rig->store->done = on_done;
    rig->store->done_context = rig;
    rig->stats = weir_store_redis_stats(rig->store);
    rig->closed = false;
    STORE_UNTIL(rig, rig->stats->up == 1);
}

static void on_closed(void *context)
{
    ((struct store_rig *)context)->closed = true;
}

void store_rig_set_up(struct store_rig *rig, bool test_time)
{
    struct weir_store_redis_options options;

    store_rig_start(rig);
    options = store_rig_options(rig);
    if (test_time)
        options.test_time_ns = &rig->now_ns;
    store_rig_open(rig, &options);
}

void store_rig_close(struct store_rig *rig)
{
    weir_store_redis_shutdown(rig->store, on_closed, rig);
    STORE_UNTIL(rig, rig->closed);
    rig->store = NULL;
}

void store_rig_end(struct store_rig *rig)
{
    if (rig->store != NULL)
        store_rig_close(rig);
    uv_close((uv_handle_t *)&rig->guard, NULL);
    uv_run(&rig->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&rig->loop), 0);
    if (rig->server.pid != 0 || rig->server.directory[0] != '\0')
        redis_server_stop(&rig->server);
}

struct weir_limit store_rig_limit(enum weir_algorithm algorithm, uint64_t rate, uint64_t window_ns)
{
    const struct weir_limit_spec spec = {
        .algorithm = algorithm, .rate = rate, .window_ns = window_ns};
    struct weir_limit limit;

    assert_int_equal(weir_limit_init(&limit, &spec, NULL), 0);
    limit.name = "rig";
    return limit;
}

void store_rig_begin(struct rig_decision *decision, uint8_t op)
{
    static uint64_t leases;

    memset(decision, 0, sizeof *decision);
    decision->decision.checks = decision->checks;
    decision->decision.outcomes = decision->outcomes;
    decision->decision.op = op;
    decision->decision.lease.id = ++leases;
}

struct weir_check *store_rig_add(struct rig_decision *decision, const struct weir_limit *limit,
                                 const char *key, uint64_t cost)
{
    static const uint64_t secret[2] = {1, 2};
    uint16_t i = decision->decision.count++;
    struct weir_check *check = &decision->checks[i];

    assert_true(i < STORE_RIG_CHECKS);
    snprintf(decision->keys[i], sizeof decision->keys[i], "%s", key);
    *check = (struct weir_check){
        .limit = limit,
        .cost = cost,
        .key = {decision->keys[i], strlen(decision->keys[i])},
        .rule = UINT32_MAX,
    };
    weir_siphash128(secret, decision->keys[i], check->key.size, check->hash);
    return check;
}

bool store_rig_submit(struct store_rig *rig, struct rig_decision *decision)
{
    struct weir_decision *batch[1] = {&decision->decision};
    uint32_t finished = rig->finished;
    size_t pending = rig->store->ops->submit(rig->store, rig->now_ns, batch, 1);

    assert_int_equal(rig->finished, finished); /* never from inside submit */
    assert_int_equal(pending, decision->decision.verdict == WEIR_PENDING);
    return pending > 0;
}

int store_rig_decide(struct store_rig *rig, struct rig_decision *decision)
{
    bool pending = store_rig_submit(rig, decision);

    rig->store->ops->flush(rig->store);
    if (pending)
        STORE_UNTIL(rig, decision->done);
    return decision->error != 0 ? decision->error : decision->decision.verdict;
}

int store_rig_take(struct store_rig *rig, const struct weir_limit *limit, const char *key,
                   uint64_t cost)
{
    struct rig_decision decision;

    store_rig_begin(&decision, WEIR_OP_DECIDE);
    store_rig_add(&decision, limit, key, cost);
    return store_rig_decide(rig, &decision);
}

uint32_t store_rig_events(const struct store_rig *rig, const char *name)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < rig->event_count && i < STORE_RIG_EVENTS; i++)
        count +=
            strncmp(rig->events[i], name, strlen(name)) == 0 && rig->events[i][strlen(name)] == ' ';
    return count;
}
