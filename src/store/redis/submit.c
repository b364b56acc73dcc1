/* SPDX-License-Identifier: Apache-2.0 */
/* see state.h: decisions made at once, refused, cancelled */
#include "store/redis/script/key.h"
#include "store/redis/state.h"
#include "store/redis/stats.h"

#define LEFT_MAX_NS (UINT64_C(3600) * 1000000000) /* of a deadline: no call takes an hour */

#define WAITS_MAX 3 /* for shares, of one decision: then the server decides it */

/* --- At once ---------------------------------------------------------------------------------- */

static bool has_state(const struct weir_decision *decision)
{
    for (uint16_t i = 0; i < decision->count; i++)
        if (call_plan_has_state(&decision->checks[i]))
            return true;
    return false;
}

/* Decides what needs nobody. */
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

/* --- Lists of pending decisions
 * ------------------------------------------------------------------------- */

static void append(struct pending_list *list, struct pending *pending, enum pending_state state)
{
    pending->state = (uint8_t)state;
    pending->next = NULL;
    if (list->last != NULL)
        list->last->next = pending;
    else
        list->first = pending;
    list->last = pending;
}

/* The next of them that was not cancelled meanwhile; NULL: none. */
static struct pending *take_first(struct store *store, struct pending_list *list)
{
    while (list->first != NULL) {
        struct pending *pending = list->first;

        list->first = pending->next;
        if (list->first == NULL)
            list->last = NULL;
        if (pending->decision != NULL)
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

    while ((pending = take_first(store, &store->refused)) != NULL)
        pending_finish(store, pending, pending->error);
}

/* --- Asking ----------------------------------------------------------------------------------- */

static bool is_asking(const struct store *store)
{
    return redis_breaker_closed(&store->breaker);
}

static int ask(struct store *store, struct pending *pending)
{
    return is_asking(store) ? pending_start(store, pending) : WEIR_ERR_STORE;
}

enum tried { TRIED_DECIDED, TRIED_WAITS, TRIED_NOTHING };

static enum tried try_shares(struct store *store, struct pending *pending)
{
    bool waits = is_asking(store) && pending->waited < WAITS_MAX;
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

    /* `done` may cancel any of them: they stand in a list of ours first. */
    for (struct redis_shares_wait *next; waits != NULL; waits = next) {
        next = waits->next;
        pending = waits->decision->store_data;
        pending->error = (int8_t)error;
        append(&store->woken, pending, PENDING_WOKEN);
    }
    while ((pending = take_first(store, &store->woken)) != NULL)
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
    if (pending == NULL)
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

    if (pending == NULL)
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
    if (!store->server_told) { /* until it tells its own time */
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

/* A deadline that has passed says something of the server; a client that went away doesn't. */
static void account_late(struct store *store, const struct pending *pending)
{
    uint64_t slack_ns = store->deadline_ns / 8; /* the engine's clock is read at other moments */
    const struct store_call *call = pending->calls.first;

    if (uv_hrtime() + slack_ns < pending->give_up_hr)
        return;
    redis_stats_add(&store->stats.timeouts, 1);
    /* One that waited for a share has no call of its own; the share's is on its first check's key,
     * most often. Where the breaker opens by this, its probe asks that server. */
    call_account(store,
                 call != NULL ? call->call.cluster_slot
                              : redis_check_cluster_slot(pending->decision->checks),
                 false);
}

static void cancel(struct weir_store *base, struct weir_decision *decision)
{
    struct store *store = store_of(base);
    struct pending *pending = decision->store_data;

    decision->store_data = NULL;
    if (pending == NULL)
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

/* The server's, as far as it is known: until it has told its time, the engine's. */
static uint64_t time_of(const struct weir_store *base, uint64_t now_ns)
{
    struct store *store = store_of(base);

    return store->server_told ? store_server_now(store) : now_ns;
}

const struct weir_store_ops redis_store_ops = {
    .name = "redis",
    .prepare = prepare,
    .submit = submit,
    .flush = flush,
    .cancel = cancel,
    .name_of = name_of,
    .secret = server_info_secret,
    .time = time_of,
    .close = store_close,
};
