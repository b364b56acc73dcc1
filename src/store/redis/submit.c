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
        if (redis_plan_has_state(&decision->checks[i]))
            return true;
    return false;
}

/* Decides what needs nobody. */
static bool decide_stateless(struct store *store, struct weir_decision *decision)
{
    if (has_state(decision))
        return false;
    redis_plan_fill_stateless(decision);
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

/* --- Lists of flights ------------------------------------------------------------------------- */

static void append(struct flight_list *list, struct flight *flight, enum flight_state state)
{
    flight->state = (uint8_t)state;
    flight->next = NULL;
    if (list->last != NULL)
        list->last->next = flight;
    else
        list->first = flight;
    list->last = flight;
}

/* The next of them that was not cancelled meanwhile; NULL: none. */
static struct flight *take_first(struct store *store, struct flight_list *list)
{
    while (list->first != NULL) {
        struct flight *flight = list->first;

        list->first = flight->next;
        if (list->first == NULL)
            list->last = NULL;
        if (flight->decision != NULL)
            return flight;
        flight_free(store, flight);
    }
    return NULL;
}

/* Its end comes with the flush: not from inside submit. */
static void refuse(struct store *store, struct flight *flight, int error)
{
    flight->error = (int8_t)error;
    append(&store->refused, flight, FLIGHT_REFUSED);
}

static void deliver_refused(struct store *store)
{
    struct flight *flight;

    while ((flight = take_first(store, &store->refused)) != NULL)
        flight_finish(store, flight, flight->error);
}

/* --- Asking ----------------------------------------------------------------------------------- */

static bool is_asking(const struct store *store)
{
    return redis_breaker_closed(&store->breaker);
}

static int ask(struct store *store, struct flight *flight)
{
    return is_asking(store) ? flight_start(store, flight) : WEIR_ERR_STORE;
}

enum tried { TRIED_DECIDED, TRIED_WAITS, TRIED_NOTHING };

static enum tried try_shares(struct store *store, struct flight *flight)
{
    bool waits = is_asking(store) && flight->waited < WAITS_MAX;
    struct redis_leases_wait *wait = waits ? &flight->wait : NULL;

    switch (redis_leases_try(store->leases, flight->decision, wait, store_now(store))) {
    case REDIS_LEASES_DECIDED:
        flight->decision->now_ns = store_server_now(store);
        return TRIED_DECIDED;
    case REDIS_LEASES_WAIT:
        flight->state = FLIGHT_WAITS;
        flight->waited++;
        store->queued = true;
        return TRIED_WAITS;
    default:
        return TRIED_NOTHING;
    }
}

static void try_again(struct store *store, struct flight *flight)
{
    enum tried tried = try_shares(store, flight);

    if (tried == TRIED_WAITS)
        return;

    int err = tried == TRIED_DECIDED ? 0 : ask(store, flight);

    if (tried == TRIED_DECIDED || err != 0)
        flight_finish(store, flight, err);
}

void store_wake(struct store *store, struct redis_leases_wait *waits, int error)
{
    struct flight *flight;

    /* `done` may cancel any of them: they stand in a list of ours first. */
    for (struct redis_leases_wait *next; waits != NULL; waits = next) {
        next = waits->next;
        flight = waits->decision->store_data;
        flight->error = (int8_t)error;
        append(&store->woken, flight, FLIGHT_WOKEN);
    }
    while ((flight = take_first(store, &store->woken)) != NULL)
        if (flight->error != 0)
            flight_finish(store, flight, flight->error);
        else
            try_again(store, flight);
}

/* --- The store's operations ------------------------------------------------------------------- */

/* What a batch has in common. */
struct batch {
    uint64_t now_ns;           /* the engine's time */
    uint64_t sent_ns, sent_hr; /* the same moment by our clocks */
};

static struct flight *take_flight(struct store *store, struct weir_decision *decision,
                                  const struct batch *batch)
{
    struct flight *flight = redis_slabs_take(&store->flights, sizeof *flight);
    uint64_t left_ns = store->deadline_ns;

    decision->store_data = flight;
    if (flight == NULL)
        return NULL; /* no memory at all: the engine's deadline ends it */
    if (decision->deadline_ns > batch->now_ns)
        left_ns = decision->deadline_ns - batch->now_ns;
    if (left_ns > LEFT_MAX_NS)
        left_ns = LEFT_MAX_NS;
    *flight = (struct flight){
        .decision = decision,
        .sent_ns = batch->sent_ns,
        .give_up_hr = batch->sent_hr + left_ns,
    };
    return flight;
}

static void release_flight(struct store *store, struct flight *flight)
{
    flight->decision->store_data = NULL;
    flight_free(store, flight);
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

    struct flight *flight = take_flight(store, decision, batch);

    if (flight == NULL)
        return true;
    if (leased) {
        enum tried tried = try_shares(store, flight);

        if (tried == TRIED_WAITS)
            return true;
        if (tried == TRIED_DECIDED || decide_remembered(store, decision)) {
            release_flight(store, flight);
            return false;
        }
    }
    if (store_gives_back(decision))
        redis_denial_cache_forget(store->denials, decision);

    int err = ask(store, flight);

    if (err != 0)
        refuse(store, flight, err);
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
static void account_late(struct store *store, const struct flight *flight)
{
    uint64_t slack_ns = store->deadline_ns / 8; /* the engine's clock is read at other moments */
    const struct store_call *call = flight->calls.first;

    if (uv_hrtime() + slack_ns < flight->give_up_hr)
        return;
    redis_stats_add(&store->stats.timeouts, 1);
    /* One that waited for a share has no call of its own; the share's is on its first check's key,
     * most often. Where the breaker opens by this, its probe asks that server. */
    call_account(store,
                 call != NULL ? call->call.slot : redis_key_check_slot(flight->decision->checks),
                 false);
}

static void cancel(struct weir_store *base, struct weir_decision *decision)
{
    struct store *store = store_of(base);
    struct flight *flight = decision->store_data;

    decision->store_data = NULL;
    if (flight == NULL)
        return;
    switch (flight->state) {
    case FLIGHT_REFUSED:
    case FLIGHT_WOKEN:
        flight->decision = NULL;
        return;
    case FLIGHT_WAITS:
        redis_leases_leave(store->leases, &flight->wait);
        account_late(store, flight);
        break;
    default:
        account_late(store, flight);
        flight_drop_calls(store, flight);
        if (store_gives_back(decision))
            redis_denial_cache_forget(store->denials, decision);
        break;
    }
    flight_free(store, flight);
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
    .secret = learn_secret,
    .time = time_of,
    .close = store_close,
};
