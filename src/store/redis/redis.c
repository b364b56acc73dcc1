/* SPDX-License-Identifier: Apache-2.0 */
/* see redis.h: opening and closing, the client's events, the timer */
#include "store/redis/redis.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "store/redis/jitter.h"
#include "store/redis/state.h"
#include "store/redis/stats.h"

#define DEADLINE_NS UINT64_C(20000000)
#define MEMORY_KEYS 65536
#define HOLDER_MASK ((UINT64_C(1) << 53) - 1) /* whole numbers of Lua */
#define TICK_NS UINT64_C(10000000)            /* after a reply, shares are looked at this soon */
#define MS_NS UINT64_C(1000000)

/* --- Clocks and events ------------------------------------------------------------------------ */

static uint64_t boot_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

void store_read_clocks(struct store *store)
{
    store->hr = uv_hrtime();
    store->now_ns = store->test_time_ns != NULL ? *store->test_time_ns : boot_ns();
    store->clocks_read = true;
}

/* The loop has called everybody whose socket was ready. */
static void after_polling(uv_check_t *check)
{
    ((struct store *)check->data)->clocks_read = false;
}

void store_tell(struct store *store, const char *event, const char *format, ...)
{
    char text[WEIR_REASON_MAX];
    va_list arguments;

    if (store->event == NULL || store->closing)
        return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    store->event(store->event_context, event, text);
}

static void client_event(void *context, enum redis_event event, const char *text)
{
    struct store *store = context;

    switch (event) {
    case REDIS_EVENT_UP:
        store->connected = true;
        store->server_info_hr = 0;
        redis_breaker_hurry(&store->breaker, store_hr(store));
        store_tell(store, "store_up", "%s", text);
        break;
    case REDIS_EVENT_DOWN:
        store->connected = false;
        if (redis_breaker_trip(&store->breaker, store_hr(store)))
            redis_stats_add(&store->stats.breaker_opened, 1);
        store_tell(store, "store_down", "%s", text);
        break;
    case REDIS_EVENT_FAILOVER:
        store_tell(store, "store_failover", "%s", text);
        break;
    case REDIS_EVENT_TOPOLOGY:
        store_tell(store, "store_topology", "%s", text);
        break;
    }
    store_update(store);
}

/* --- Turns and the timer ---------------------------------------------------------------------- */

static void copy_counters(struct store *store)
{
    uint64_t redirects = redis_client_counters(store->client)->redirects;
    const struct redis_shares_counters *from = redis_shares_counters(store->shares);
    struct weir_store_redis_stats *to = &store->stats;

    redis_stats_set(&to->redirects, redirects);
    redis_stats_set(&to->shares, from->held);
    redis_stats_set(&to->share_refills, from->refills);
    redis_stats_set(&to->share_returns, from->returns);
    redis_stats_set(&to->share_decisions, from->decisions);
}

void store_flush(struct store *store)
{
    background_send_shares(store);
    copy_counters(store);
    if (store->queued) {
        store->queued = false;
        redis_client_flush(store->client);
        store_read_clocks(store);
        store->turn_hr[store->turn % STORE_TURNS] = store->hr;
        store->turn++;
    }
    store->clocks_read = store->flush_soon = false;
}

/* Timers and closed handles may have read the clocks in this turn of the loop. */
static void before_waiting(uv_prepare_t *prepare)
{
    struct store *store = prepare->data;

    if (store->flush_soon)
        store_flush(store);
    store->clocks_read = false;
}

void store_flush_soon(struct store *store)
{
    store->flush_soon = true;
}

static void on_timer(uv_timer_t *timer);

void store_arm(struct store *store, uint64_t due_hr)
{
    if (due_hr >= store->timer_hr || store->closing)
        return;

    uint64_t hr = store_hr(store);

    store->timer_hr = due_hr;
    uv_timer_start(&store->timer, on_timer, due_hr > hr ? (due_hr - hr + MS_NS - 1) / MS_NS : 0, 0);
}

void store_tick_soon(struct store *store)
{
    uint64_t hr = store_hr(store);

    if (store->tick_hr > hr + TICK_NS)
        store->tick_hr = hr + TICK_NS;
    store_arm(store, store->tick_hr);
}

void store_update(struct store *store)
{
    bool closed = redis_breaker_closed(&store->breaker);

    redis_stats_set(&store->stats.breaker, store->breaker.state);
    redis_stats_set(&store->stats.up, closed && store->connected);
    if (closed && store->connected)
        store_arm(store, server_info_tick(store, store_hr(store)));
    store_arm(store, redis_breaker_due_ns(&store->breaker));
}

static void tick(struct store *store, uint64_t hr)
{
    uint64_t now_ns, next_ns;

    if (hr < store->tick_hr)
        return;
    now_ns = store_now(store);
    next_ns = redis_shares_tick(store->shares, now_ns);
    store->tick_hr = next_ns == WEIR_NEVER ? UINT64_MAX
                     : next_ns > now_ns    ? hr + (next_ns - now_ns)
                                           : hr + TICK_NS;
}

static void finish_shutdown(struct store *store, uint64_t hr);

static void on_timer(uv_timer_t *timer)
{
    struct store *store = timer->data;
    uint64_t hr;

    store_read_clocks(store);
    hr = store->hr;
    store->timer_hr = UINT64_MAX;
    tick(store, hr);
    if (redis_breaker_probe(&store->breaker, hr)) {
        store_update(store);
        background_probe(store);
    }

    uint64_t next_hr = background_expire(store, hr), server_info_hr = server_info_tick(store, hr);

    if (server_info_hr < next_hr)
        next_hr = server_info_hr;
    store_flush(store);
    store_arm(store, next_hr < store->tick_hr ? next_hr : store->tick_hr);
    store_update(store);
    if (store->shut_down_by_hr != 0)
        finish_shutdown(store, hr);
    store->clocks_read = false;
}

/* --- Closing ---------------------------------------------------------------------------------- */

static void free_store(struct store *store)
{
    if (store->shares != NULL)
        redis_shares_close(store->shares);
    if (store->denials != NULL)
        redis_denial_cache_close(store->denials);
    redis_slabs_end(&store->call_slabs);
    redis_slabs_end(&store->pending_slabs);
    free(store);
}

static void one_closed(void *context)
{
    struct store *store = context;

    if (--store->handles > 0)
        return;

    void (*closed)(void *) = store->closed;
    void *closed_context = store->closed_context;

    free_store(store);
    if (closed != NULL)
        closed(closed_context);
}

static void handle_closed(uv_handle_t *handle)
{
    one_closed(handle->data);
}

static void close_handles(struct store *store)
{
    store->closing = true;
    uv_close((uv_handle_t *)&store->timer, handle_closed);
    uv_close((uv_handle_t *)&store->prepare, handle_closed);
    uv_close((uv_handle_t *)&store->check, handle_closed);
}

static void begin_close(struct store *store)
{
    redis_client_close(store->client, one_closed, store);
    close_handles(store);
}

void store_close(struct weir_store *base)
{
    begin_close(store_of(base));
}

static void finish_shutdown(struct store *store, uint64_t hr)
{
    if (store->closing)
        return;
    if (redis_shares_busy(store->shares) == 0 || hr >= store->shut_down_by_hr ||
        !redis_breaker_closed(&store->breaker))
        begin_close(store);
    else
        store_arm(store, hr + MS_NS);
}

void weir_store_redis_shutdown(struct weir_store *base, void (*closed)(void *context),
                               void *context)
{
    struct store *store = store_of(base);
    uint64_t hr = store_hr(store);

    store->closed = closed;
    store->closed_context = context;
    store->shut_down_by_hr = hr + STORE_SHUTDOWN_NS;
    redis_shares_end(store->shares);
    store_flush(store);
    finish_shutdown(store, hr);
}

/* --- Opening ---------------------------------------------------------------------------------- */

static int open_parts(struct store *store, const struct weir_store_redis_options *options)
{
    uint32_t keys = options->memory_keys != 0 ? options->memory_keys : MEMORY_KEYS;
    const struct redis_denial_cache_options denials = {
        .records = keys,
        .longest_ns = options->remember_ns,
        .secret = {redis_random(&store->random), redis_random(&store->random)},
    };
    const struct redis_shares_options shares = {
        .keys_max = keys,
        .life_ns = options->share_life_ns,
        .holder = (redis_random(&store->random) & HOLDER_MASK) | 1,
    };
    int err = redis_denial_cache_open(&store->denials, &denials);

    if (err < 0)
        return err;
    return redis_shares_open(&store->shares, &shares);
}

#define RIGHTS_MAX 512

/* A look at a key that is nobody's, as all calls are made: whether we may make them. */
static struct weir_bytes write_rights(const struct store *store, char bytes[RIGHTS_MAX])
{
    static const uint16_t first = 0;
    struct weir_check check = {.key = {"rights", 6}};
    struct weir_outcome outcome;
    const struct weir_decision look = {
        .checks = &check, .outcomes = &outcome, .count = 1, .op = WEIR_OP_LOOK};
    const struct redis_batch batch = {
        .decision = &look, .checks = &first, .count = 1, .prefix = store->prefix};
    const struct redis_script *script;

    assert(redis_script_size(&batch) <= RIGHTS_MAX);
    return (struct weir_bytes){bytes, redis_script_write(&batch, bytes, &script, NULL)};
}

static int open_client(struct store *store, const struct weir_store_redis_options *options,
                       struct weir_reason *reason)
{
    char rights[RIGHTS_MAX];
    const struct redis_client_options client = {
        .loop = options->loop,
        .url = options->url,
        .scripts = redis_scripts,
        .script_count = redis_script_count,
        .rights = write_rights(store, rights),
        .random_seed = redis_random(&store->random),
        .event = client_event,
        .context = store,
    };

    uv_timer_init(store->loop, &store->timer);
    uv_prepare_init(store->loop, &store->prepare);
    uv_check_init(store->loop, &store->check);
    store->timer.data = store->prepare.data = store->check.data = store;
    uv_prepare_start(&store->prepare, before_waiting);
    uv_check_start(&store->check, after_polling);
    return redis_client_open(&store->client, &client, reason);
}

int weir_store_redis_open(struct weir_store **base, const struct weir_store_redis_options *options,
                          struct weir_reason *reason)
{
    const char *prefix = options->prefix != NULL ? options->prefix : "weir:";
    struct store *store;

    if (strlen(prefix) > REDIS_PREFIX_MAX || strpbrk(prefix, "{}") != NULL) {
        snprintf(reason->text, sizeof reason->text,
                 "the prefix of keys has at most %d bytes and no braces", REDIS_PREFIX_MAX);
        return WEIR_ERR_RANGE;
    }
    store = calloc(1, sizeof *store);
    if (store == NULL)
        return WEIR_ERR_MEMORY;
    store->base.ops = &redis_store_ops;
    store->loop = options->loop;
    store->random = options->random_seed;
    store->deadline_ns = options->deadline_ns != 0 ? options->deadline_ns : DEADLINE_NS;
    store->test_time_ns = options->test_time_ns;
    store->secret = options->secret;
    store->event = options->event;
    store->event_context = options->event_context;
    store->timer_hr = store->tick_hr = UINT64_MAX;
    store->handles = 4;
    snprintf(store->prefix, sizeof store->prefix, "%s", prefix);
    redis_slabs_init(&store->call_slabs, STORE_CALLS_BYTES);
    redis_slabs_init(&store->pending_slabs, STORE_PENDING_BYTES);
    redis_breaker_init(&store->breaker, redis_random(&store->random));

    int err = open_parts(store, options);

    if (err < 0) {
        free_store(store);
        return err;
    }
    err = open_client(store, options, reason);
    if (err < 0) {
        store->handles--; /* the client's */
        close_handles(store);
        return err;
    }
    *base = &store->base;
    return 0;
}

const struct weir_store_redis_stats *weir_store_redis_stats(const struct weir_store *base)
{
    return &store_of(base)->stats;
}
