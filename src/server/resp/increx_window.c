/* SPDX-License-Identifier: Apache-2.0 */
/* see increx_window.h */
#include "server/resp/increx_window.h"

#include <stdio.h>

#include "server/resp/decide.h"
#include "server/resp/reply.h"
#include "server/resp/throttle.h"

/* What only counters can do. NULL: nothing that was asked. */
static const char *why_not(const struct weir_increx *increx)
{
    const uint16_t life = WEIR_INCREX_EX | WEIR_INCREX_PX;
    if (increx->options & WEIR_INCREX_SATURATE)
        return "with SATURATE";
    if (!(increx->options & life))
        return "without EX or PX";
    if (!(increx->options & WEIR_INCREX_ENX))
        return "without ENX";
    if (!(increx->options & WEIR_INCREX_UPPER))
        return "without UBOUND";
    if (increx->options & WEIR_INCREX_LOWER && increx->lower > 0)
        return "with LBOUND above 0"; /* a count starts at 0 */
    return increx->by < 0 || increx->upper < 0 ? "with a negative number" : NULL;
}

/* The count after the decision, and what was added. */
static void window_write(struct weir_slot *slot, struct weir_output *output)
{
    struct weir_decision *decision = slot->decision;
    const struct weir_check *check = &decision->checks[0];
    const struct weir_outcome *outcome = &decision->outcomes[0];
    struct weir_report report;
    weir_decision_report(decision, 0, &report);
    uint64_t count = report.limit - report.remaining;
    /* A bound that was lowered may stand below the count, which only the state tells. */
    if (report.remaining == 0 && !outcome->reported && report.reset_after_ns > 0)
        count = (uint32_t)outcome->cell.b;
    char *out = output->data + output->used;
    out = WEIR_LITERAL_WRITE(out, "*2\r\n");
    out = weir_resp_write_integer(out, (int64_t)count);
    out = weir_resp_write_integer(out, decision->verdict != WEIR_DENIED ? (int64_t)check->cost
                                                                        : (int64_t)0);
    output->used = (size_t)(out - output->data);
    weir_worker_give(slot->connection->worker, decision);
}

/* The compiled limit, through the worker's cache: no bucket has a count of UINT64_MAX. */
static int window_limit(struct weir_resp_workspace *redis, const struct weir_increx *increx,
                        const struct weir_limit **limit, struct weir_reason *reason)
{
    uint64_t window = (uint64_t)increx->time;
    uint64_t unit_ns = increx->options & WEIR_INCREX_EX ? UINT64_C(1000000000) : UINT64_C(1000000);
    struct weir_limit_spec spec = {.algorithm = WEIR_FIXED_WINDOW, .rate = (uint64_t)increx->upper};
    spec.window_ns = window <= WEIR_WINDOW_MAX_NS / unit_ns ? window * unit_ns : UINT64_MAX;
    weir_resp_refresh(redis);
    struct weir_adhoc_cached *cached =
        weir_adhoc_cache_at(&redis->cache, spec.rate, UINT64_MAX, spec.window_ns);
    if (!cached->limit || cached->a != spec.rate || cached->b != UINT64_MAX ||
        cached->c != spec.window_ns) {
        const struct weir_limit *found;
        if (spec.window_ns > WEIR_WINDOW_MAX_NS) {
            snprintf(reason->text, sizeof reason->text, "the window is longer than 366 days");
            return WEIR_ERR_RANGE;
        }
        int err = weir_adhoc_limits_find(redis->shared->limits, redis->worker->store,
                                         redis->worker->local, &spec, NULL, &found, reason);
        if (err < 0)
            return err;
        *cached = (struct weir_adhoc_cached){spec.rate, UINT64_MAX, spec.window_ns, found};
    }
    *limit = cached->limit;
    return 0;
}

void weir_increx_window(struct weir_resp_call *call, const struct weir_increx *increx)
{
    const struct weir_limit *limit;
    struct weir_reason reason = {{0}};
    const char *why = why_not(increx);
    if (why) {
        weir_resp_error(
            call,
            "ERR INCREX %s: beside `store: redis` weir serves it for windows, as INCREX "
            "key BYINT n UBOUND limit EX seconds ENX",
            why);
        return;
    }
    int err = window_limit(call->redis, increx, &limit, &reason);
    if (err < 0)
        weir_adhoc_limit_error(call, err, "ERR ", &reason);
    else
        weir_resp_decide(call, WEIR_RESP_WINDOWS, call->args[1], limit, WEIR_OP_DECIDE,
                         (uint64_t)increx->by, window_write);
}
