/* SPDX-License-Identifier: Apache-2.0 */
/* INCREX as a window limiter: INCREX key [BYINT n] UBOUND limit EX seconds|PX ms ENX. See resp.h.
 *
 * It is fixed_window with N = the upper bound: the count starts again at every multiple of the
 * window since the epoch, where Redis starts a window at its first hit; the bound over any window
 * is the same, 2N. What a counter of Redis can do beyond that (move its end with every hit, live
 * for ever, go down, take fractions) is refused in words, never ignored. */
#include "server/resp/increx.h"

#include <stdio.h>

#include "server/resp/decide.h"
#include "server/resp/reply.h"
#include "server/resp/throttle.h"

struct increx {
    int64_t by, upper, window;
    uint64_t unit_ns;
    bool has_upper, has_enx;
};

static void refuse(struct weir_resp_call *call, const char *what)
{
    weir_resp_error(call,
                    "ERR INCREX %s: weir serves it for windows, as INCREX key BYINT n UBOUND "
                    "limit EX seconds ENX",
                    what);
}

/* The value of the option at args[i], an integer of at least `min`. */
static bool option_value(struct weir_resp_call *call, uint32_t i, int64_t min, int64_t *value)
{
    if (i + 1 >= call->count)
        weir_resp_syntax_error(call);
    else if (!weir_resp_number(call->args[i + 1], value))
        weir_resp_error(call, "ERR value is not an integer or out of range");
    else if (*value < min)
        weir_resp_error(call, "ERR %.*s must be %lld or more", WEIR_RESP_SHOWN(call->args[i]),
                        (long long)min);
    else
        return true;
    return false;
}

/* Takes the option at args[*i]. False: it was answered. */
static bool option_read(struct weir_resp_call *call, uint32_t *i, struct increx *increx)
{
    static const char *const refused[] = {"BYFLOAT", "SATURATE", "EXAT", "PXAT",
                                          "PERSIST", "NX",       "XX"};
    struct weir_bytes name = call->args[*i];
    bool seconds = weir_resp_is(name, "EX");
    int64_t lower;
    for (size_t r = 0; r < sizeof refused / sizeof *refused; r++) {
        if (!weir_resp_is(name, refused[r]))
            continue;
        weir_resp_error(call, "ERR INCREX with %s is not served: weir counts in fixed windows",
                        refused[r]);
        return false;
    }
    if (weir_resp_is(name, "ENX")) {
        increx->has_enx = true;
        return true;
    }
    if (weir_resp_is(name, "BYINT")) {
        if (!option_value(call, *i, 0, &increx->by))
            return false;
    } else if (weir_resp_is(name, "UBOUND")) {
        increx->has_upper = true;
        if (!option_value(call, *i, 0, &increx->upper))
            return false;
    } else if (weir_resp_is(name, "LBOUND")) {
        if (!option_value(call, *i, INT64_MIN, &lower))
            return false;
        if (lower > 0) { /* a count starts at 0 */
            refuse(call, "with LBOUND above 0");
            return false;
        }
    } else if (!increx->window && (seconds || weir_resp_is(name, "PX"))) {
        increx->unit_ns = seconds ? UINT64_C(1000000000) : UINT64_C(1000000);
        if (!option_value(call, *i, 1, &increx->window))
            return false;
    } else {
        weir_resp_syntax_error(call);
        return false;
    }
    ++*i;
    return true;
}

static bool increx_read(struct weir_resp_call *call, struct increx *increx)
{
    *increx = (struct increx){.by = 1};
    for (uint32_t i = 2; i < call->count; i++)
        if (!option_read(call, &i, increx))
            return false;
    if (increx->has_enx && !increx->window)
        weir_resp_error(call, "ERR ENX flag requires an expiration");
    else if (!increx->window)
        refuse(call, "without EX or PX");
    else if (!increx->has_enx)
        refuse(call, "without ENX");
    else if (!increx->has_upper)
        refuse(call, "without UBOUND");
    else
        return true;
    return false;
}

/* The count after the decision, and what was added. */
static void increx_write(struct weir_slot *slot, struct weir_output *output)
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
static int increx_limit(struct weir_resp_workspace *redis, const struct increx *increx,
                        const struct weir_limit **limit, struct weir_reason *reason)
{
    uint64_t window = (uint64_t)increx->window;
    struct weir_limit_spec spec = {.algorithm = WEIR_FIXED_WINDOW, .rate = (uint64_t)increx->upper};
    spec.window_ns =
        window <= WEIR_WINDOW_MAX_NS / increx->unit_ns ? window * increx->unit_ns : UINT64_MAX;
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

void weir_resp_increx(struct weir_resp_call *call)
{
    struct increx increx;
    const struct weir_limit *limit;
    struct weir_reason reason = {{0}};
    if (!increx_read(call, &increx))
        return;
    int err = increx_limit(call->redis, &increx, &limit, &reason);
    if (err < 0)
        weir_adhoc_limit_error(call, err, "ERR ", &reason);
    else
        weir_resp_decide(call, WEIR_RESP_WINDOWS, call->args[1], limit, WEIR_OP_DECIDE,
                         (uint64_t)increx.by, increx_write);
}
