/* SPDX-License-Identifier: Apache-2.0 */
/* see pending.h */
#include "store/redis/pending.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "store/redis/background.h"
#include "store/redis/client/refusal.h"
#include "store/redis/script/key.h"
#include "store/redis/script/pack.h"
#include "store/redis/state.h"
#include "store/redis/stats.h"

#define KEY_WRITTEN_MAX 512 /* longer ones are shown by the text alone */
#define KEY_SHOWN_MAX 120
#define TELL_ERRORS_NS UINT64_C(1000000000) /* one line a second at most */

/* --- Calls ------------------------------------------------------------------------------------ */

void call_append(struct call_list *list, struct store_call *call)
{
    call->list = list;
    call->previous = list->last;
    call->next = NULL;
    if (list->last)
        list->last->next = call;
    else
        list->first = call;
    list->last = call;
}

void call_unlink(struct store_call *call)
{
    struct call_list *list = call->list;

    if (call->previous)
        call->previous->next = call->next;
    else
        list->first = call->next;
    if (call->next)
        call->next->previous = call->previous;
    else
        list->last = call->previous;
    call->list = NULL;
}

struct store_call *call_take(struct store *store, enum call_kind kind, size_t bytes)
{
    size_t size = sizeof(struct store_call) + bytes;
    struct store_call *call = redis_slabs_take(&store->call_slabs, size);

    if (!call)
        return NULL;
    memset(call, 0, sizeof *call);
    call->store = store;
    call->size = size;
    call->kind = (uint8_t)kind;
    call->call.bytes = call->bytes;
    return call;
}

void call_give(struct store *store, struct store_call *call)
{
    if (call->list)
        call_unlink(call);
    redis_slabs_give(&store->call_slabs, call, call->size);
}

struct store_call *call_write(struct store *store, enum call_kind kind,
                              const struct redis_batch *batch)
{
    struct store_call *call = call_take(store, kind, redis_script_size(batch));
    bool cluster = redis_client_is_cluster(store->client);

    if (call)
        call->call.size = redis_script_write(batch, call->bytes, &call->call.script,
                                             cluster ? &call->call.cluster_slot : NULL);
    return call;
}

struct store_call *call_write_step(struct store *store, enum call_kind kind,
                                   const struct pending *pending, struct redis_step step)
{
    const struct call_plan_context context = {
        .prefix = store->prefix,
        .now_ns = store_server_now(store),
        .test_now_us = store->test_time_ns ? *store->test_time_ns / 1000 : 0,
    };
    uint16_t checks[WEIR_CHECKS_MAX];
    struct weir_decision as;
    struct redis_batch batch;

    call_plan_batch(pending->call_plan, pending->decision, step, &context, &as, checks, &batch);
    return call_write(store, kind, &batch);
}

/* --- Their end -------------------------------------------------------------------------------- */

/* Returns whether the shared breaker is open: its stores do not count what is late then. */
static bool account_shared(struct store *store, uint16_t slot, enum call_end end)
{
    struct redis_shared_breaker *shared = store->shared_breaker;

    if (end == CALL_ANSWERED)
        redis_shared_breaker_answered(shared, store_hr(store));
    else if (end == CALL_LATE && redis_shared_breaker_late(shared, store_hr(store), slot)) {
        redis_stats_add(&store->stats.breaker_opened, 1);
        store_tell(store, "shared_breaker_open", "%u calls in a row without an answer",
                   (unsigned)WEIR_BREAKER_FAILURES);
        store_update(store);
    }
    return !redis_shared_breaker_closed(shared);
}

void call_account(struct store *store, uint16_t slot, enum call_end end)
{
    bool ok = end == CALL_ANSWERED;

    if (store->shared_breaker && account_shared(store, slot, end))
        ok |= end == CALL_LATE; /* its own count begins anew */
    if (!weir_breaker_call(&store->breaker, store_hr(store), ok))
        return;
    store->probe_slot = slot;
    redis_stats_add(&store->stats.breaker_opened, 1);
    store->reported_open = true;
    store_tell(store, "breaker_open", "%u calls in a row without an answer",
               (unsigned)store->breaker.failures);
    store_update(store);
}

/* Of a calendar the server is sent what is around the time that we take for its. Where we are wrong
 * it does nothing but say what its clock shows (lua/quota.lua), and so the next call is right. */
static bool call_learned(struct store *store, const struct weir_reason *reason)
{
    static const char says[] = "WEIR clocks differ; at the server it is ";
    const char *at = strstr(reason->text, says);
    uint64_t us = at ? strtoull(at + sizeof says - 1, NULL, 10) : 0;

    if (us == 0 || us > REDIS_TIME_MAX_US)
        return false;
    store->server_ns = us * 1000;
    store->server_at_ns = store_now(store);
    store->server_known = true;
    return true;
}

/* The key that an error is about, where its text does not say it: that of a key of another type
 * does not. Of several checks the first one's. Returns the text. */
static const char *name_key(const struct store *store, const struct weir_check *first,
                            uint16_t count, const struct weir_reason *reason,
                            char text[KEY_SHOWN_MAX + 48])
{
    char key[KEY_WRITTEN_MAX], shown[KEY_SHOWN_MAX + 1];
    struct weir_bytes bytes = {key, 0};

    text[0] = '\0';
    if (!strstr(reason->text, "WRONGTYPE") && !strstr(reason->text, "a key of"))
        return text;
    if (!first->limit || redis_key_size(store->prefix, first) > sizeof key)
        bytes = first->key;
    else
        bytes.size = (size_t)(redis_key_write(key, store->prefix, first) - key);
    redis_quote(shown, sizeof shown, bytes);
    if (count > 1)
        snprintf(text, KEY_SHOWN_MAX + 48, "%s, or another of %u keys: ", shown, count);
    else
        snprintf(text, KEY_SHOWN_MAX + 48, "%s: ", shown);
    return text;
}

void call_refused(struct store *store, const struct weir_check *first, uint16_t count,
                  const struct weir_reason *reason)
{
    char key[KEY_SHOWN_MAX + 48];
    uint64_t hr = store_hr(store);

    (void)call_learned(store, reason);
    redis_stats_add(&store->stats.errors, 1);
    if (store->error_logged_hr != 0 && hr - store->error_logged_hr < TELL_ERRORS_NS)
        return;
    store->error_logged_hr = hr;
    store_tell(store, "store_error", "%s%s", name_key(store, first, count, reason, key),
               reason->text);
}

/* When its bytes were written. */
static uint64_t written_hr(const struct store *store, const struct store_call *call)
{
    uint32_t turns = store->turn - call->turn;

    return turns > 0 && turns < STORE_TURNS ? store->turn_hr[call->turn % STORE_TURNS]
                                            : call->sent_hr;
}

static void account_end(struct store *store, struct store_call *call, int error)
{
    if (error == 0) {
        uint64_t from_hr = written_hr(store, call), hr = store_hr(store);

        redis_stats_latency(&store->stats.latency_ns, store->stats.latency_buckets,
                            hr > from_hr ? hr - from_hr : 0);
    } else {
        redis_stats_add(&store->stats.errors, 1);
        if (error == WEIR_ERR_IO)
            redis_stats_add(&store->stats.unknown, 1);
    }
    if (call->kind != CALL_PROBE)
        call_account(store, call->call.cluster_slot, error == 0 ? CALL_ANSWERED : CALL_LOST);
}

static void pending_answered(struct store *store, struct store_call *call, int error,
                             const struct weir_resp_node *nodes, uint32_t count);

static void call_done(struct redis_call *done, int error, const struct weir_resp_node *nodes,
                      uint32_t count)
{
    struct store_call *call = (struct store_call *)(void *)done; /* its first member */
    struct store *store = call->store;

    call_unlink(call);
    account_end(store, call, error);
    if (call->kind <= CALL_STEP)
        pending_answered(store, call, error, nodes, count);
    else if (background_answered(store, call, error, nodes, count))
        call = NULL; /* to be sent again */
    if (call)
        redis_slabs_give(&store->call_slabs, call, call->size);
    if (store->queued)
        store_flush_soon(store);
}

int call_queue(struct store *store, struct store_call *call, struct call_list *list,
               uint64_t give_up_hr)
{
    call->call.done = call_done;
    call->call.give_up_ns = give_up_hr;
    call->sent_hr = store_hr(store);
    call->turn = store->turn;
    call_append(list, call);

    int err = redis_client_send(store->client, &call->call);

    if (err < 0) {
        call_unlink(call);
        return err;
    }
    redis_stats_add(&store->stats.calls, 1);
    store->queued = true;
    return 0;
}

int call_send(struct store *store, struct store_call *call, struct call_list *list,
              uint64_t give_up_hr)
{
    int err = call_queue(store, call, list, give_up_hr);

    if (err < 0)
        call_give(store, call);
    return err;
}

bool call_forget(struct store *store, struct store_call *call)
{
    bool executed = !redis_client_forget(store->client, &call->call);

    if (executed)
        redis_stats_add(&store->stats.unknown, 1);
    call_give(store, call);
    return executed;
}

/* --- Its end ---------------------------------------------------------------------------------- */

void pending_free(struct store *store, struct pending *pending)
{
    if (pending->call_plan)
        redis_slabs_give(&store->call_slabs, pending->call_plan, sizeof *pending->call_plan);
    redis_slabs_give(&store->pending_slabs, pending, sizeof *pending);
}

void pending_finish(struct store *store, struct pending *pending, int error)
{
    struct weir_decision *decision = pending->decision;

    decision->store_data = NULL;
    pending_free(store, pending);
    store->base.done(store->base.done_context, decision, error);
}

/* The same when a server was asked. */
static void finish_asked(struct store *store, struct pending *pending, int error)
{
    const struct weir_decision *decision = pending->decision;

    if (store_gives_back(decision))
        redis_denial_cache_forget(store->denials, decision);
    else if (error == 0)
        redis_denial_cache_keep(store->denials, decision, pending->sent_ns, store_now(store));
    pending_finish(store, pending, error);
}

/* A client that repeats a request by its idempotency key gets the same lease again, so it must
 * live. */
static bool may_be_repeated(const struct weir_decision *decision)
{
    return decision->checks[decision->count - 1].flags & WEIR_CHECK_IDEMPOTENCY;
}

/* Undoes the effect of a call whose end is unknown. A lease would keep other requests out for its
 * whole life, so it is ended; a charge stays. */
static void undo_unknown(struct store *store, const struct pending *pending)
{
    if (pending->decision->op == WEIR_OP_DECIDE && !may_be_repeated(pending->decision))
        background_release(store, pending->decision);
}

void pending_drop_calls(struct store *store, struct pending *pending)
{
    bool executed = false;

    while (pending->calls.first) {
        struct store_call *call = pending->calls.first;
        struct redis_step step = call->step;
        bool perhaps = call_forget(store, call);

        executed |= perhaps;
        if (pending->call_plan)
            call_plan_failed(pending->call_plan, pending->decision, step, perhaps);
    }
    if (pending->call_plan) {
        struct redis_step step;

        call_plan_cancel(pending->call_plan);
        while (call_plan_next(pending->call_plan, &step))
            background_roll_back(store, pending, step);
        executed &= !pending->call_plan->reserves;
    }
    if (executed)
        undo_unknown(store, pending);
}

/* --- One call --------------------------------------------------------------------------------- */

static void pending_batch(struct store *store, const struct weir_decision *decision, uint8_t action,
                          uint16_t checks[WEIR_CHECKS_MAX], struct redis_batch *batch)
{
    *batch = (struct redis_batch){
        .decision = decision,
        .checks = checks,
        .action = action,
        .prefix = store->prefix,
        .now_ns = store_server_now(store),
        .test_now_us = store->test_time_ns ? *store->test_time_ns / 1000 : 0,
    };
    for (uint16_t i = 0; i < decision->count; i++)
        if (weir_check_has_state(&decision->checks[i]))
            checks[batch->count++] = i;
}

static int start_one(struct store *store, struct pending *pending, uint8_t action)
{
    uint16_t checks[WEIR_CHECKS_MAX];
    struct redis_batch batch;

    pending_batch(store, pending->decision, action, checks, &batch);

    struct store_call *call = call_write(store, CALL_DECISION, &batch);

    if (!call)
        return WEIR_ERR_FULL;
    call->pending = pending;
    call->action = action;
    return call_send(store, call, &pending->calls, pending->give_up_hr);
}

/* Returns 0 when the decision is made, 1 when the server is asked again, or an error. */
static int read_one(struct store *store, struct pending *pending, const struct store_call *call,
                    const struct weir_resp_node *nodes, uint32_t count)
{
    struct weir_decision *decision = pending->decision;
    uint16_t checks[WEIR_CHECKS_MAX];
    struct redis_batch batch;
    struct weir_reason reason = {""};
    uint64_t now_ns = 0;

    pending_batch(store, decision, call->action, checks, &batch);

    int verdict =
        redis_script_read(&batch, decision, nodes, count, &now_ns, &decision->repeated, &reason);

    if (verdict < 0 && !pending->again && call_learned(store, &reason)) {
        pending->again = true;
        return start_one(store, pending, call->action) == 0 ? 1 : WEIR_ERR_STORE;
    }
    if (verdict < 0) {
        call_refused(store, &decision->checks[checks[0]], batch.count, &reason);
        return WEIR_ERR_STORE;
    }
    decision->now_ns = store->server_ns = now_ns;
    store->server_known = true;
    store->server_at_ns = store_now(store);
    call_plan_fill_stateless(decision);
    weir_decision_join(decision);
    return 0;
}

/* --- A plan ----------------------------------------------------------------------------------- */

static int send_step(struct store *store, struct pending *pending, struct redis_step step)
{
    struct store_call *call = call_write_step(store, CALL_STEP, pending, step);

    if (!call)
        return WEIR_ERR_FULL;
    call->pending = pending;
    call->step = step;
    return call_send(store, call, &pending->calls, pending->give_up_hr);
}

/* Sends what can be sent now: of a plan that is decided, what is to be rolled back. Returns its
 * state. */
static uint8_t go_on(struct store *store, struct pending *pending)
{
    struct call_plan *plan = pending->call_plan;
    struct redis_step step;

    while (plan->state != CALL_PLAN_FAILED && call_plan_next(plan, &step))
        if (step.kind == REDIS_STEP_ROLL_BACK)
            background_roll_back(store, pending, step);
        else if (send_step(store, pending, step) < 0)
            call_plan_failed(plan, pending->decision, step, false);
    return plan->state;
}

static int start_plan(struct store *store, struct pending *pending, bool one_slot)
{
    pending->call_plan = redis_slabs_take(&store->call_slabs, sizeof *pending->call_plan);
    if (!pending->call_plan)
        return WEIR_ERR_FULL;
    call_plan_make(pending->call_plan, pending->decision, one_slot, weir_random(&store->random));
    pending->decision->now_ns = 0; /* becomes the latest of its servers' */
    if (go_on(store, pending) == CALL_PLAN_RUNNING)
        return 0;
    pending_drop_calls(store, pending);
    return WEIR_ERR_STORE;
}

static int read_step(struct store *store, struct pending *pending, const struct store_call *call,
                     const struct weir_resp_node *nodes, uint32_t count)
{
    const struct call_plan_context context = {.prefix = store->prefix};
    uint16_t checks[WEIR_CHECKS_MAX];
    struct weir_decision as;
    struct redis_batch batch;
    struct weir_reason reason = {""};
    uint64_t now_ns = 0;
    bool repeated = false;

    call_plan_batch(pending->call_plan, pending->decision, call->step, &context, &as, checks,
                    &batch);

    int verdict =
        redis_script_read(&batch, pending->decision, nodes, count, &now_ns, &repeated, &reason);

    if (verdict < 0) {
        call_refused(store, &pending->decision->checks[checks[0]], batch.count, &reason);
        return WEIR_ERR_STORE;
    }
    call_plan_settle(pending->decision, &batch, now_ns);
    call_plan_answered(pending->call_plan, pending->decision, call->step, (uint8_t)verdict,
                       repeated);
    return 0;
}

static void step_answered(struct store *store, struct pending *pending, struct store_call *call,
                          int error, const struct weir_resp_node *nodes, uint32_t count)
{
    bool perhaps = error != WEIR_ERR_STORE;

    if (error == 0)
        error = read_step(store, pending, call, nodes, count);
    if (error != 0)
        call_plan_failed(pending->call_plan, pending->decision, call->step, perhaps);
    switch (go_on(store, pending)) {
    case CALL_PLAN_DECIDED:
        call_plan_finish(pending->call_plan, pending->decision);
        finish_asked(store, pending, 0);
        break;
    case CALL_PLAN_FAILED:
        pending_drop_calls(store, pending);
        finish_asked(store, pending, WEIR_ERR_STORE);
        break;
    default:
        break;
    }
}

/* --- Either ----------------------------------------------------------------------------------- */

/* Where the states live: so that it is computed once. */
static void place(struct weir_decision *decision)
{
    for (uint16_t i = 0; i < decision->count; i++)
        if (weir_check_has_state(&decision->checks[i]))
            decision->checks[i].tag = redis_key_tag(&decision->checks[i]);
}

int pending_start(struct store *store, struct pending *pending)
{
    bool one_slot = !redis_client_is_cluster(store->client);
    uint8_t action;

    pending->state = PENDING_CALLS;
    place(pending->decision);
    if (call_plan_is_one_call(pending->decision, one_slot, &action))
        return start_one(store, pending, action);
    return start_plan(store, pending, one_slot);
}

static void pending_answered(struct store *store, struct store_call *call, int error,
                             const struct weir_resp_node *nodes, uint32_t count)
{
    struct pending *pending = call->pending;

    if (call->kind == CALL_STEP) {
        step_answered(store, pending, call, error, nodes, count);
        return;
    }
    if (error == WEIR_ERR_IO)
        undo_unknown(store, pending);
    if (error == 0)
        error = read_one(store, pending, call, nodes, count);
    if (error <= 0)
        finish_asked(store, pending, error != 0 ? WEIR_ERR_STORE : 0);
}
