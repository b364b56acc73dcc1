/* SPDX-License-Identifier: Apache-2.0 */
/* see state.h: pending decisions, their calls and replies */
#include "store/redis/jitter.h"
#include "store/redis/script/key.h"
#include "store/redis/state.h"

/* --- Its end ---------------------------------------------------------------------------------- */

void flight_free(struct store *store, struct flight *flight)
{
    if (flight->plan != NULL)
        redis_slabs_give(&store->calls, flight->plan, sizeof *flight->plan);
    redis_slabs_give(&store->flights, flight, sizeof *flight);
}

void flight_finish(struct store *store, struct flight *flight, int error)
{
    struct weir_decision *decision = flight->decision;

    decision->store_data = NULL;
    flight_free(store, flight);
    store->base.done(store->base.done_context, decision, error);
}

/* The same when a server was asked. */
static void finish_asked(struct store *store, struct flight *flight, int error)
{
    const struct weir_decision *decision = flight->decision;

    if (store_gives_back(decision))
        redis_denial_cache_forget(store->denials, decision);
    else if (error == 0)
        redis_denial_cache_keep(store->denials, decision, flight->sent_ns, store_now(store));
    flight_finish(store, flight, error);
}

/* Who repeats a request by its idempotency key is given the same lease again, so it must live. */
static bool may_be_repeated(const struct weir_decision *decision)
{
    return decision->checks[decision->count - 1].flags & WEIR_CHECK_ONCE;
}

/* What a call may have done although nobody will hear of it. A lease would keep others out for its
 * whole life; what was charged stays charged. */
static void undo_unknown(struct store *store, const struct flight *flight)
{
    if (flight->decision->op == WEIR_OP_DECIDE && !may_be_repeated(flight->decision))
        background_release(store, flight->decision);
}

void flight_drop_calls(struct store *store, struct flight *flight)
{
    bool executed = false;

    while (flight->calls.first != NULL) {
        struct store_call *call = flight->calls.first;
        struct redis_step step = call->step;
        bool perhaps = call_forget(store, call);

        executed |= perhaps;
        if (flight->plan != NULL)
            redis_plan_failed(flight->plan, flight->decision, step, perhaps);
    }
    if (flight->plan != NULL) {
        struct redis_step step;

        redis_plan_cancel(flight->plan);
        while (redis_plan_next(flight->plan, &step))
            background_roll_back(store, flight, step);
        executed &= !flight->plan->reserves;
    }
    if (executed)
        undo_unknown(store, flight);
}

/* --- One call --------------------------------------------------------------------------------- */

void flight_batch(struct store *store, const struct weir_decision *decision, uint8_t action,
                  uint16_t checks[WEIR_CHECKS_MAX], struct redis_batch *batch)
{
    *batch = (struct redis_batch){
        .decision = decision,
        .checks = checks,
        .action = action,
        .prefix = store->prefix,
        .now_ns = store_server_now(store),
        .test_now_us = store->test_time_ns != NULL ? *store->test_time_ns / 1000 : 0,
    };
    for (uint16_t i = 0; i < decision->count; i++)
        if (redis_plan_has_state(&decision->checks[i]))
            checks[batch->count++] = i;
}

static int start_one(struct store *store, struct flight *flight, uint8_t action)
{
    uint16_t checks[WEIR_CHECKS_MAX];
    struct redis_batch batch;

    flight_batch(store, flight->decision, action, checks, &batch);

    struct store_call *call = call_write(store, CALL_DECISION, &batch);

    if (call == NULL)
        return WEIR_ERR_FULL;
    call->flight = flight;
    call->action = action;
    return call_send(store, call, &flight->calls, flight->give_up_hr);
}

/* Returns 0 when the decision is made, 1 when the server is asked again, or an error. */
static int read_one(struct store *store, struct flight *flight, const struct store_call *call,
                    const struct weir_resp_node *nodes, uint32_t count)
{
    struct weir_decision *decision = flight->decision;
    uint16_t checks[WEIR_CHECKS_MAX];
    struct redis_batch batch;
    struct weir_reason reason = {""};
    uint64_t now_ns = 0;

    flight_batch(store, decision, call->action, checks, &batch);

    int verdict =
        redis_script_read(&batch, decision, nodes, count, &now_ns, &decision->repeated, &reason);

    if (verdict < 0 && !flight->again && call_learned(store, &reason)) {
        flight->again = true;
        return start_one(store, flight, call->action) == 0 ? 1 : WEIR_ERR_STORE;
    }
    if (verdict < 0) {
        call_refused(store, &decision->checks[checks[0]], batch.count, &reason);
        return WEIR_ERR_STORE;
    }
    decision->now_ns = store->server_ns = now_ns;
    store->server_told = true;
    store->server_at_ns = store_now(store);
    redis_plan_fill_stateless(decision);
    weir_decision_join(decision);
    return 0;
}

/* --- A plan ----------------------------------------------------------------------------------- */

static int send_step(struct store *store, struct flight *flight, struct redis_step step)
{
    struct store_call *call = call_write_step(store, CALL_STEP, flight, step);

    if (call == NULL)
        return WEIR_ERR_FULL;
    call->flight = flight;
    call->step = step;
    return call_send(store, call, &flight->calls, flight->give_up_hr);
}

/* Sends what can be sent now: of a plan that is decided, what is to be rolled back. Returns its
 * state. */
static uint8_t go_on(struct store *store, struct flight *flight)
{
    struct redis_plan *plan = flight->plan;
    struct redis_step step;

    while (plan->state != REDIS_PLAN_FAILED && redis_plan_next(plan, &step))
        if (step.kind == REDIS_STEP_ROLL_BACK)
            background_roll_back(store, flight, step);
        else if (send_step(store, flight, step) < 0)
            redis_plan_failed(plan, flight->decision, step, false);
    return plan->state;
}

static int start_plan(struct store *store, struct flight *flight, bool one_slot)
{
    flight->plan = redis_slabs_take(&store->calls, sizeof *flight->plan);
    if (flight->plan == NULL)
        return WEIR_ERR_FULL;
    redis_plan_make(flight->plan, flight->decision, one_slot, redis_random(&store->random));
    flight->decision->now_ns = 0; /* becomes the latest of its servers' */
    if (go_on(store, flight) == REDIS_PLAN_RUNNING)
        return 0;
    flight_drop_calls(store, flight);
    return WEIR_ERR_STORE;
}

static int read_step(struct store *store, struct flight *flight, const struct store_call *call,
                     const struct weir_resp_node *nodes, uint32_t count)
{
    const struct redis_plan_context context = {.prefix = store->prefix};
    uint16_t checks[WEIR_CHECKS_MAX];
    struct weir_decision as;
    struct redis_batch batch;
    struct weir_reason reason = {""};
    uint64_t now_ns = 0;
    bool repeated = false;

    redis_plan_batch(flight->plan, flight->decision, call->step, &context, &as, checks, &batch);

    int verdict =
        redis_script_read(&batch, flight->decision, nodes, count, &now_ns, &repeated, &reason);

    if (verdict < 0) {
        call_refused(store, &flight->decision->checks[checks[0]], batch.count, &reason);
        return WEIR_ERR_STORE;
    }
    redis_plan_settle(flight->decision, &batch, now_ns);
    redis_plan_answered(flight->plan, flight->decision, call->step, (uint8_t)verdict, repeated);
    return 0;
}

static void step_answered(struct store *store, struct flight *flight, struct store_call *call,
                          int error, const struct weir_resp_node *nodes, uint32_t count)
{
    bool perhaps = error != WEIR_ERR_STORE;

    if (error == 0)
        error = read_step(store, flight, call, nodes, count);
    if (error != 0)
        redis_plan_failed(flight->plan, flight->decision, call->step, perhaps);
    switch (go_on(store, flight)) {
    case REDIS_PLAN_DECIDED:
        redis_plan_finish(flight->plan, flight->decision);
        finish_asked(store, flight, 0);
        break;
    case REDIS_PLAN_FAILED:
        flight_drop_calls(store, flight);
        finish_asked(store, flight, WEIR_ERR_STORE);
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
        if (redis_plan_has_state(&decision->checks[i]))
            decision->checks[i].tag = redis_key_tag(&decision->checks[i]);
}

int flight_start(struct store *store, struct flight *flight)
{
    bool one_slot = !redis_client_is_cluster(store->client);
    uint8_t action;

    flight->state = FLIGHT_CALLS;
    place(flight->decision);
    if (redis_plan_is_one_call(flight->decision, one_slot, &action))
        return start_one(store, flight, action);
    return start_plan(store, flight, one_slot);
}

void flight_answered(struct store *store, struct store_call *call, int error,
                     const struct weir_resp_node *nodes, uint32_t count)
{
    struct flight *flight = call->flight;

    if (call->kind == CALL_STEP) {
        step_answered(store, flight, call, error, nodes, count);
        return;
    }
    if (error == WEIR_ERR_IO)
        undo_unknown(store, flight);
    if (error == 0)
        error = read_one(store, flight, call, nodes, count);
    if (error <= 0)
        finish_asked(store, flight, error != 0 ? WEIR_ERR_STORE : 0);
}
