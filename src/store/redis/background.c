/* SPDX-License-Identifier: Apache-2.0 */
/* see state.h: calls that no decision waits for */
#include <string.h>

#include "store/redis/share/script.h"
#include "store/redis/state.h"
#include "store/redis/stats.h"

/* How long a call of each kind may take. */
static uint64_t limit_ns(const struct store *store, int kind)
{
    switch (kind) {
    case CALL_SHARE:
        return STORE_SHARE_DEADLINES * store->deadline_ns;
    case CALL_ORPHAN:
        return STORE_ORPHAN_NS;
    default:
        return store->deadline_ns;
    }
}

int background_send(struct store *store, struct store_call *call)
{
    uint64_t due_hr = store_hr(store) + limit_ns(store, call->kind);
    int err = call_send(store, call, &store->background[call->kind], due_hr);

    if (err == 0)
        store_arm(store, due_hr);
    return err;
}

/* --- Shares of budgets ------------------------------------------------------------------------ */

static int send_share_call(struct store *store, const struct redis_shares_call *ask)
{
    const uint64_t test_now_us = store->test_time_ns != NULL ? *store->test_time_ns / 1000 : 0;
    struct store_call *call =
        call_take(store, CALL_SHARE, sizeof *ask + share_script_size(store->prefix, ask->check));

    if (call == NULL)
        return WEIR_ERR_FULL;
    call->share = (struct redis_shares_call *)(void *)call->bytes;
    *call->share = *ask;
    call->call.bytes = call->bytes + sizeof *ask;
    call->call.size =
        share_script_write(store->prefix, ask->check, &ask->ask, test_now_us,
                           call->bytes + sizeof *ask, &call->call.script, &call->call.cluster_slot);
    return background_send(store, call);
}

/* While nothing is sent, what is to be given back waits: it is worth nothing to send it to a server
 * that does not answer, and it expires by itself. */
void background_send_shares(struct store *store)
{
    struct redis_shares_call ask;

    while (redis_breaker_closed(&store->breaker) &&
           redis_shares_next(store->shares, store_now(store), &ask)) {
        int err = send_share_call(store, &ask);

        if (err == 0)
            continue;
        store_wake(store, redis_shares_failed(store->shares, ask.place, false), WEIR_ERR_STORE);
        return; /* the next would fare no better */
    }
}

static void share_call_answered(struct store *store, const struct store_call *call, int error,
                                const struct weir_resp_node *nodes, uint32_t count)
{
    const struct redis_shares_call *share = call->share;
    struct redis_shares_wait *waits;
    struct share_reply reply;
    struct weir_reason reason = {""};
    bool executed = error != WEIR_ERR_STORE;

    if (error == 0) {
        error = share_script_read(share->check, &share->ask, nodes, count, &reply, &reason);
        if (error != 0)
            call_refused(store, share->check, 1, &reason);
    }
    if (error == 0)
        waits = redis_shares_answered(store->shares, share->place, &reply, store_now(store));
    else
        waits = redis_shares_failed(store->shares, share->place, executed);
    store->queued = true; /* it may have made more to send */
    store_tick_soon(store);
    store_wake(store, waits, error == 0 ? 0 : WEIR_ERR_STORE);
}

/* --- Undoing ---------------------------------------------------------------------------------- */

/* What undoes works once, and so may be sent twice: tried for a second, where the connection was
 * lost or is not there yet. Returns whether it is kept for that. */
static bool pause_orphan(struct store *store, struct store_call *call)
{
    if (call->times++ >= STORE_ORPHAN_TRIES)
        return false;
    call->sent_hr = store_hr(store) + STORE_ORPHAN_PAUSE_NS;
    call_append(&store->paused, call);
    store_arm(store, call->sent_hr);
    return true;
}

static void send_orphan(struct store *store, struct store_call *call)
{
    uint64_t due_hr = store_hr(store) + STORE_ORPHAN_NS;
    int err = WEIR_ERR_STORE;

    if (redis_breaker_closed(&store->breaker) || call->times == 0)
        err = call_queue(store, call, &store->background[CALL_ORPHAN], due_hr);
    if (err == 0)
        store_arm(store, due_hr);
    else if (!pause_orphan(store, call))
        call_give(store, call);
}

static uint64_t resume_orphans(struct store *store, uint64_t hr)
{
    while (store->paused.first != NULL && store->paused.first->sent_hr <= hr) {
        struct store_call *call = store->paused.first;

        call_unlink(call);
        send_orphan(store, call);
    }
    return store->paused.first != NULL ? store->paused.first->sent_hr : UINT64_MAX;
}

void background_roll_back(struct store *store, struct pending *pending, struct redis_step step)
{
    struct store_call *call = call_write_step(store, CALL_ORPHAN, pending, step);

    if (call == NULL)
        return; /* what it reserved stays charged */
    redis_stats_add(&store->stats.rollbacks, 1);
    send_orphan(store, call);
}

void background_release(struct store *store, const struct weir_decision *decision)
{
    struct weir_decision release = *decision;

    release.op = WEIR_OP_RELEASE;
    for (uint16_t i = 0; i < decision->count; i++) {
        const struct weir_check *check = &decision->checks[i];

        if (!call_plan_has_state(check) || check->limit->spec.algorithm != WEIR_CONCURRENCY)
            continue;

        const struct redis_batch batch = {
            .decision = &release,
            .checks = &i,
            .count = 1,
            .action = REDIS_DECIDE,
            .prefix = store->prefix,
            .test_now_us = store->test_time_ns != NULL ? *store->test_time_ns / 1000 : 0,
        };
        struct store_call *call = call_write(store, CALL_ORPHAN, &batch);

        if (call == NULL)
            return; /* the lease ends by its life */
        send_orphan(store, call);
    }
}

/* --- The probe -------------------------------------------------------------------------------- */

static void probe_ended(struct store *store, bool answered)
{
    uint64_t hr = store_hr(store), open_ms = (hr - store->breaker.opened_ns) / 1000000;

    redis_breaker_probed(&store->breaker, hr, answered);
    /* where the server was gone, "store_up" has said it */
    if (answered && store->told_open) {
        store->told_open = false;
        store_tell(store, "breaker_closed", "answered after %llu ms", (unsigned long long)open_ms);
    }
    store_update(store);
}

void background_probe(struct store *store)
{
    static const char ping[] = "*1\r\n$4\r\nPING\r\n";
    struct store_call *call = call_take(store, CALL_PROBE, sizeof ping - 1);
    bool sent = call != NULL;

    if (sent) {
        memcpy(call->bytes, ping, sizeof ping - 1);
        call->call.size = sizeof ping - 1;
        call->call.cluster_slot = store->probe_slot;
        sent = background_send(store, call) == 0;
    }
    if (!sent)
        probe_ended(store, false);
}

/* --- Their end -------------------------------------------------------------------------------- */

bool background_answered(struct store *store, struct store_call *call, int error,
                         const struct weir_resp_node *nodes, uint32_t count)
{
    switch (call->kind) {
    case CALL_SHARE:
        share_call_answered(store, call, error, nodes, count);
        return false;
    case CALL_PROBE:
        probe_ended(store, error == 0 && nodes[0].type == WEIR_RESP_SIMPLE);
        return false;
    case CALL_SERVER_INFO:
        server_info_answered(store, call, error, nodes, count);
        return false;
    default:
        /* What undoes works once, so that it may be sent twice. */
        return error != 0 && pause_orphan(store, call);
    }
}

static void expire(struct store *store, struct store_call *call)
{
    uint8_t kind = call->kind;
    uint16_t slot = call->call.cluster_slot;
    void *place = kind == CALL_SHARE ? call->share->place : NULL;
    bool executed = call_forget(store, call);

    redis_stats_add(&store->stats.timeouts, 1);
    if (kind == CALL_PROBE) {
        probe_ended(store, false);
        return;
    }
    call_account(store, slot, false);
    if (kind == CALL_SERVER_INFO)
        server_info_failed(store);
    if (kind == CALL_SHARE)
        store_wake(store, redis_shares_failed(store->shares, place, executed), WEIR_ERR_STORE);
}

uint64_t background_expire(struct store *store, uint64_t hr)
{
    uint64_t next_hr = resume_orphans(store, hr);

    for (int kind = 0; kind < CALL_KINDS; kind++) {
        struct call_list *list = &store->background[kind];
        uint64_t limit = limit_ns(store, kind);

        while (list->first != NULL && list->first->sent_hr + limit <= hr)
            expire(store, list->first);
        if (list->first != NULL && list->first->sent_hr + limit < next_hr)
            next_hr = list->first->sent_hr + limit;
    }
    return next_hr;
}
