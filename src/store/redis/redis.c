/* SPDX-License-Identifier: Apache-2.0 */
/* see redis.h */
#include "store/redis/redis.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/random.h"
#include "store/redis/background.h"
#include "store/redis/pending.h"
#include "store/redis/script/key.h"
#include "store/redis/state.h"
#include "store/redis/stats.h"

#define LEFT_MAX_NS (UINT64_C(3600) * 1000000000) /* of a deadline: no call takes an hour */

#define WAITS_MAX 3 /* for shares, of one decision: then the server decides it */
/* Room for 65536 calls, plans and pending decisions of the usual size, and for some more. */
#define CALLS_BYTES ((size_t)64 * 1024 * 1024)
#define PENDING_BYTES ((size_t)32 * 1024 * 1024)
#define SHUTDOWN_NS UINT64_C(200000000)
#define DEADLINE_NS UINT64_C(20000000)
#define MEMORY_KEYS 65536
#define FAR_CONNECT_MS 5000 /* TCP, TLS and the handshake are some six round trips */
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
    store->now_ns = store->test_time_ns ? *store->test_time_ns : boot_ns();
    store->clocks_read = true;
}

/* The loop has handled every socket that was ready. */
static void after_polling(uv_check_t *check)
{
    ((struct store *)check->data)->clocks_read = false;
}

void store_tell(struct store *store, const char *event, const char *format, ...)
{
    char text[WEIR_REASON_MAX];
    va_list arguments;

    if (!store->event || store->closing)
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
        weir_breaker_hurry(&store->breaker, store_hr(store));
        if (store->shared_breaker)
            redis_shared_breaker_hurry(store->shared_breaker, store_hr(store));
        store_tell(store, "store_up", "%s", text);
        break;
    case REDIS_EVENT_DOWN:
        store->connected = false;
        if (weir_breaker_trip(&store->breaker, store_hr(store)))
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
    redis_stats_set(&to->share_forfeited, from->forfeited);
    redis_stats_set(&to->roundtrip_ns, from->roundtrip_ns);
    redis_stats_set(&to->roundtrips_known, from->roundtrip_ns != 0);
}

static void store_flush(struct store *store)
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

/* When this store looks whether a probe is its task. While the shared breaker is open its probe is
 * the only one: an own breaker that is open waits for its end. Without a connection there is none
 * to send: the next one updates this. */
static uint64_t probe_due_hr(struct store *store)
{
    uint64_t own_hr = weir_breaker_due_ns(&store->breaker), shared_hr;

    if (redis_shared_breaker_closed(store->shared_breaker))
        return own_hr;
    if (!store->connected)
        return UINT64_MAX;
    shared_hr = redis_shared_breaker_due_ns(store->shared_breaker, store);
    own_hr = own_hr == UINT64_MAX ? own_hr : store_hr(store) + WEIR_BREAKER_PAUSE_MIN_NS;
    return own_hr < shared_hr ? own_hr : shared_hr;
}

bool store_may_send(struct store *store)
{
    if (redis_shared_breaker_closed(store->shared_breaker) && weir_breaker_closed(&store->breaker))
        return true;
    store_arm(store, probe_due_hr(store));
    return false;
}

void store_update(struct store *store)
{
    bool closed = weir_breaker_closed(&store->breaker);

    redis_stats_set(&store->stats.breaker, store->breaker.state);
    redis_stats_set(&store->stats.up, closed && store->connected);
    if (closed && store->connected)
        store_arm(store, background_ask_server(store, store_hr(store)));
    store_arm(store, probe_due_hr(store));
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

static void probe_if_due(struct store *store, uint64_t hr)
{
    uint16_t slot = store->probe_slot;

    if (redis_shared_breaker_closed(store->shared_breaker)) {
        if (!weir_breaker_probe(&store->breaker, hr))
            return;
        store_update(store);
        background_probe(store, PROBE_OWN, slot);
    } else if (store->connected &&
               redis_shared_breaker_probe(store->shared_breaker, store, hr, &slot)) {
        background_probe(store, PROBE_SHARED, slot);
    }
}

static void on_timer(uv_timer_t *timer)
{
    struct store *store = timer->data;
    uint64_t hr;

    store_read_clocks(store);
    hr = store->hr;
    store->timer_hr = UINT64_MAX;
    tick(store, hr);
    probe_if_due(store, hr);

    uint64_t next_hr = background_expire(store, hr),
             server_info_hr = background_ask_server(store, hr);

    if (server_info_hr < next_hr)
        next_hr = server_info_hr;
    store_flush(store);
    store_arm(store, next_hr < store->tick_hr ? next_hr : store->tick_hr);
    store_update(store);
    if (store->shut_down_by_hr != 0)
        finish_shutdown(store, hr);
    store->clocks_read = false;
}

/* --- At once ---------------------------------------------------------------------------------- */

static bool has_state(const struct weir_decision *decision)
{
    for (uint16_t i = 0; i < decision->count; i++)
        if (weir_check_has_state(&decision->checks[i]))
            return true;
    return false;
}

/* Decides what needs no server. */
static bool decide_stateless(struct store *store, struct weir_decision *decision)
{
    if (has_state(decision))
        return false;
    call_plan_fill_stateless(decision);
    decision->now_ns = store_server_now(store);
    weir_decision_join(decision);
    return true;
}

static bool decide_remembered(struct store *store, struct weir_decision *decision)
{
    if (!redis_denial_cache_find(store->denials, decision, store_now(store)))
        return false;
    redis_stats_add(&store->stats.remembered, 1);
    return true;
}

static bool is_leased(const struct weir_decision *decision)
{
    return decision->op == WEIR_OP_DECIDE && decision->checks[0].flags & WEIR_CHECK_LEASED;
}

/* --- Lists of pending decisions --------------------------------------------------------------- */

static void append(struct pending_list *list, struct pending *pending, enum pending_state state)
{
    pending->state = (uint8_t)state;
    pending->next = NULL;
    if (list->last)
        list->last->next = pending;
    else
        list->first = pending;
    list->last = pending;
}

/* The next of them that was not cancelled meanwhile; NULL: none. */
static struct pending *take_first(struct store *store, struct pending_list *list)
{
    while (list->first) {
        struct pending *pending = list->first;

        list->first = pending->next;
        if (!list->first)
            list->last = NULL;
        if (pending->decision)
            return pending;
        pending_free(store, pending);
    }
    return NULL;
}

/* Its end comes with the flush: not from inside submit. */
static void refuse(struct store *store, struct pending *pending, int error)
{
    pending->error = (int8_t)error;
    append(&store->refused, pending, PENDING_REFUSED);
}

static void deliver_refused(struct store *store)
{
    struct pending *pending;

    while ((pending = take_first(store, &store->refused)))
        pending_finish(store, pending, pending->error);
}

/* --- Asking ----------------------------------------------------------------------------------- */

static int ask(struct store *store, struct pending *pending)
{
    return store_may_send(store) ? pending_start(store, pending) : WEIR_ERR_STORE;
}

enum tried { TRIED_DECIDED, TRIED_WAITS, TRIED_NOTHING };

static enum tried try_shares(struct store *store, struct pending *pending)
{
    bool waits = store_may_send(store) && pending->waited < WAITS_MAX;
    struct redis_shares_wait *wait = waits ? &pending->wait : NULL;

    switch (redis_shares_try(store->shares, pending->decision, wait, store_now(store))) {
    case REDIS_SHARES_DECIDED:
        pending->decision->now_ns = store_server_now(store);
        return TRIED_DECIDED;
    case REDIS_SHARES_WAIT:
        pending->state = PENDING_WAITS;
        pending->waited++;
        store->queued = true;
        return TRIED_WAITS;
    default:
        return TRIED_NOTHING;
    }
}

static void try_again(struct store *store, struct pending *pending)
{
    enum tried tried = try_shares(store, pending);

    if (tried == TRIED_WAITS)
        return;

    int err = tried == TRIED_DECIDED ? 0 : ask(store, pending);

    if (tried == TRIED_DECIDED || err != 0)
        pending_finish(store, pending, err);
}

void store_wake(struct store *store, struct redis_shares_wait *waits, int error)
{
    struct pending *pending;

    /* `done` may cancel any of them, so they are moved to a list of the store first. */
    for (struct redis_shares_wait *next; waits; waits = next) {
        next = waits->next;
        pending = waits->decision->store_data;
        pending->error = (int8_t)error;
        append(&store->woken, pending, PENDING_WOKEN);
    }
    while ((pending = take_first(store, &store->woken)))
        if (pending->error != 0)
            pending_finish(store, pending, pending->error);
        else
            try_again(store, pending);
}

/* --- The store's operations ------------------------------------------------------------------- */

/* What a batch has in common. */
struct batch {
    uint64_t now_ns;           /* the engine's time */
    uint64_t sent_ns, sent_hr; /* the same moment by our clocks */
};

static struct pending *take_pending(struct store *store, struct weir_decision *decision,
                                    const struct batch *batch)
{
    struct pending *pending = redis_slabs_take(&store->pending_slabs, sizeof *pending);
    uint64_t left_ns = store->deadline_ns;

    decision->store_data = pending;
    if (!pending)
        return NULL; /* no memory at all: the engine's deadline ends it */
    if (decision->deadline_ns > batch->now_ns)
        left_ns = decision->deadline_ns - batch->now_ns;
    if (left_ns > LEFT_MAX_NS)
        left_ns = LEFT_MAX_NS;
    *pending = (struct pending){
        .decision = decision,
        .sent_ns = batch->sent_ns,
        .give_up_hr = batch->sent_hr + left_ns,
    };
    return pending;
}

static void release_pending(struct store *store, struct pending *pending)
{
    pending->decision->store_data = NULL;
    pending_free(store, pending);
}

/* Returns whether it is pending. */
static bool submit_one(struct store *store, struct weir_decision *decision,
                       const struct batch *batch)
{
    decision->verdict = WEIR_PENDING;
    decision->source = WEIR_SOURCE_STORE;
    decision->error = 0;
    decision->delay_ns = 0;
    decision->repeated = decision->remembered = false;
    decision->apart = decision->apart && decision->op == WEIR_OP_REFUND;
    if (decide_stateless(store, decision))
        return false;

    bool leased = is_leased(decision);

    if (!leased && decide_remembered(store, decision))
        return false;

    struct pending *pending = take_pending(store, decision, batch);

    if (!pending)
        return true;
    if (leased) {
        enum tried tried = try_shares(store, pending);

        if (tried == TRIED_WAITS)
            return true;
        if (tried == TRIED_DECIDED || decide_remembered(store, decision)) {
            release_pending(store, pending);
            return false;
        }
    }
    if (store_gives_back(decision))
        redis_denial_cache_forget(store->denials, decision);

    int err = ask(store, pending);

    if (err != 0)
        refuse(store, pending, err);
    return true;
}

static size_t submit(struct weir_store *base, uint64_t now_ns,
                     struct weir_decision *const *decisions, size_t count)
{
    struct store *store = store_of(base);
    struct batch batch = {.now_ns = now_ns};
    size_t pending = 0;

    store_read_clocks(store);
    batch.sent_ns = store->now_ns;
    batch.sent_hr = store->hr;
    if (!store->server_known) { /* until the server's time is known */
        store->server_ns = now_ns;
        store->server_at_ns = batch.sent_ns;
    }
    for (size_t i = 0; i < count; i++)
        pending += submit_one(store, decisions[i], &batch);
    return pending;
}

static void flush(struct weir_store *base)
{
    struct store *store = store_of(base);

    store_flush(store);
    deliver_refused(store);
}

/* A deadline that has passed counts against the server; a client that went away does not. */
static void account_late(struct store *store, const struct pending *pending)
{
    uint64_t slack_ns = store->deadline_ns / 8; /* the engine's clock is read at other moments */
    const struct store_call *call = pending->calls.first;

    if (uv_hrtime() + slack_ns < pending->give_up_hr)
        return;
    redis_stats_add(&store->stats.timeouts, 1);
    /* One that waited for a share has no call of its own; the share's is on its first check's key,
     * most often. Where the breaker opens by this, its probe asks that server. */
    call_account(
        store, call ? call->call.cluster_slot : redis_check_cluster_slot(pending->decision->checks),
        CALL_LATE);
}

static void cancel(struct weir_store *base, struct weir_decision *decision)
{
    struct store *store = store_of(base);
    struct pending *pending = decision->store_data;

    decision->store_data = NULL;
    if (!pending)
        return;
    switch (pending->state) {
    case PENDING_REFUSED:
    case PENDING_WOKEN:
        pending->decision = NULL;
        return;
    case PENDING_WAITS:
        redis_shares_leave(store->shares, &pending->wait);
        account_late(store, pending);
        break;
    default:
        account_late(store, pending);
        pending_drop_calls(store, pending);
        if (store_gives_back(decision))
            redis_denial_cache_forget(store->denials, decision);
        break;
    }
    pending_free(store, pending);
    if (store->queued)
        store_flush_soon(store);
}

static int prepare(struct weir_store *base, struct weir_limit *limit, struct weir_reason *reason)
{
    (void)base;
    return redis_script_accepts(limit, reason);
}

static void name_of(const struct weir_store *base, const struct weir_check *check,
                    struct weir_store_name *name)
{
    (void)base;
    name->tag = redis_key_tag(check);
    redis_key_digest(check, name->digest);
}

/* The server's time; the engine's until the first reply with a time. */
static uint64_t time_of(const struct weir_store *base, uint64_t now_ns)
{
    struct store *store = store_of(base);

    return store->server_known ? store_server_now(store) : now_ns;
}

/* --- Lending ---------------------------------------------------------------------------------- */

/* The clock is read each time: a portion must not be spent after its end, however long this turn of
 * the loop has taken. */
static bool lend(struct weir_store *base, enum weir_lend how, const struct weir_check *check,
                 struct weir_outcome *outcome, struct weir_lent *lent)
{
    struct store *store = store_of(base);
    uint32_t busy = redis_shares_busy(store->shares);

    store_read_clocks(store);

    bool covered = redis_shares_lend(store->shares, how, store_may_send(store), check,
                                     store->now_ns, outcome, lent);

    if (redis_shares_busy(store->shares) > busy)
        store_flush_soon(store);
    return covered;
}

static void put_back(struct weir_store *base, const struct weir_check *check,
                     const struct weir_lent *lent)
{
    redis_shares_put_back(store_of(base)->shares, check, lent);
}

/* --- Closing ---------------------------------------------------------------------------------- */

static void free_store(struct store *store)
{
    if (store->shares)
        redis_shares_close(store->shares);
    if (store->denials)
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
    if (closed)
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
    if (store->shared_breaker)
        redis_shared_breaker_leave(store->shared_breaker, store);
    store->shared_breaker = NULL;
    redis_client_close(store->client, one_closed, store);
    close_handles(store);
}

static void store_close(struct weir_store *base)
{
    begin_close(store_of(base));
}

static void finish_shutdown(struct store *store, uint64_t hr)
{
    if (store->closing)
        return;
    if (redis_shares_busy(store->shares) == 0 || hr >= store->shut_down_by_hr ||
        !store_may_send(store))
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
    store->shut_down_by_hr = hr + SHUTDOWN_NS;
    redis_shares_end(store->shares);
    store_flush(store);
    finish_shutdown(store, hr);
}

static const struct weir_store_ops redis_store_ops = {
    .name = "redis",
    .prepare = prepare,
    .submit = submit,
    .flush = flush,
    .cancel = cancel,
    .name_of = name_of,
    .secret = background_secret,
    .time = time_of,
    .lend = lend,
    .put_back = put_back,
    .close = store_close,
};

/* --- Opening ---------------------------------------------------------------------------------- */

static int open_parts(struct store *store, const struct weir_store_redis_options *options)
{
    uint32_t keys = options->memory_keys != 0 ? options->memory_keys : MEMORY_KEYS;
    const struct redis_denial_cache_options denials = {
        .records = keys,
        .longest_ns = options->remember_ns,
        .secret = {weir_random(&store->random), weir_random(&store->random)},
    };
    const struct redis_shares_options shares = {
        .keys_max = keys,
        .life_ns = options->share_life_ns,
        .lends = options->far,
        .holder = (weir_random(&store->random) & HOLDER_MASK) | 1,
    };
    int err = redis_denial_cache_open(&store->denials, &denials);

    if (err < 0)
        return err;
    return redis_shares_open(&store->shares, &shares);
}

#define RIGHTS_MAX 512

/* A look at a key without a state, written like all calls: it shows whether the user may make them.
 */
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
        .connect_ms = options->far ? FAR_CONNECT_MS : 0,
        .random_seed = weir_random(&store->random),
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
    const char *prefix = options->prefix ? options->prefix : "weir:";
    struct store *store;

    if (strlen(prefix) > REDIS_PREFIX_MAX || strpbrk(prefix, "{}")) {
        snprintf(reason->text, sizeof reason->text,
                 "the prefix of keys has at most %d bytes and no braces", REDIS_PREFIX_MAX);
        return WEIR_ERR_RANGE;
    }
    store = calloc(1, sizeof *store);
    if (!store)
        return WEIR_ERR_MEMORY;
    store->base.ops = &redis_store_ops;
    store->loop = options->loop;
    store->random = options->random_seed;
    store->deadline_ns = options->deadline_ns != 0 ? options->deadline_ns : DEADLINE_NS;
    store->test_time_ns = options->test_time_ns;
    store->secret = options->secret;
    store->shared_breaker = options->shared_breaker;
    store->event = options->event;
    store->event_context = options->event_context;
    store->timer_hr = store->tick_hr = UINT64_MAX;
    store->handles = 4;
    snprintf(store->prefix, sizeof store->prefix, "%s", prefix);
    redis_slabs_init(&store->call_slabs, CALLS_BYTES);
    redis_slabs_init(&store->pending_slabs, PENDING_BYTES);
    weir_breaker_init(&store->breaker, weir_random(&store->random));

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
