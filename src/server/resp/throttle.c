/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that carry their bucket: CL.THROTTLE of redis-cell, THROTTLE of throttlecrab, GCRA of
 * Redis. All three are gcra with N = count, W = period, and share the states of their keys.
 * docs/redis-protocol.md says what they correct, and why. */
#include "server/resp/throttle.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/divisor.h"
#include "core/wide.h"
#include "server/resp/decide.h"
#include "server/resp/reply.h"

#define SECOND_NS UINT64_C(1000000000)
#define CELL "Cell error: Store error: "

/* What THROTTLE tells for "never": it has no sign for it, and its clients take 32 bits. */
#define NEVER_SECONDS INT32_MAX

/* --- Limits ----------------------------------------------------------------------------------- */

/* rate per window, in the range of weir_limit_init if any equal fraction is. */
static void spec_set_rate(struct weir_limit_spec *spec, uint64_t count, uint64_t window,
                          uint64_t unit_ns)
{
    bool fits = window <= WEIR_WINDOW_MAX_NS / unit_ns;
    if (!fits || count > WEIR_BUCKET_MAX || window * unit_ns < WEIR_WINDOW_MIN_NS) {
        uint64_t divisor = weir_divisor(count, window);
        count /= divisor;
        window /= divisor;
        fits = window <= WEIR_WINDOW_MAX_NS / unit_ns;
    }
    spec->rate = count;
    spec->window_ns = fits ? window * unit_ns : UINT64_MAX;
    if (spec->window_ns < WEIR_WINDOW_MIN_NS) {
        uint64_t times = (WEIR_WINDOW_MIN_NS + spec->window_ns - 1) / spec->window_ns;
        spec->rate = count <= WEIR_BUCKET_MAX ? count * times : count;
        spec->window_ns *= times;
    }
}

/* The most that a bucket of this rate can hold: B * W / N <= 2^62 ns. */
static uint64_t spec_burst_max(const struct weir_limit_spec *spec)
{
    struct wide product = wide_multiply(WEIR_DEPTH_MAX_NS, spec->rate);
    uint64_t most = WEIR_BUCKET_MAX, rest;
    if (product.hi < spec->window_ns)
        most = wide_divide(product.hi, product.lo, spec->window_ns, &rest);
    return most < WEIR_BUCKET_MAX ? most : WEIR_BUCKET_MAX;
}

void weir_resp_refresh(struct weir_resp_workspace *redis)
{
    uint64_t epoch = weir_adhoc_limits_epoch(redis->shared->limits);
    if (redis->epoch == epoch)
        return;
    redis->epoch = epoch;
    memset(&redis->cache, 0, sizeof redis->cache);
}

int weir_resp_bucket(struct weir_resp_workspace *redis, uint64_t burst, uint64_t count,
                     uint64_t window, uint64_t unit_ns, const struct weir_limit **limit,
                     struct weir_reason *reason)
{
    uint64_t c = window | (uint64_t)(unit_ns == 1) << 63; /* windows are below 2^63 */
    weir_resp_refresh(redis);
    struct weir_adhoc_cached *cached = weir_adhoc_cache_at(&redis->cache, burst, count, c);
    if (!cached->limit || cached->a != burst || cached->b != count || cached->c != c) {
        struct weir_limit_spec spec = {.algorithm = WEIR_GCRA};
        const struct weir_limit *found;
        spec_set_rate(&spec, count, window, unit_ns);
        if (spec.window_ns > WEIR_WINDOW_MAX_NS) {
            snprintf(reason->text, sizeof reason->text, "the period is longer than 366 days");
            return WEIR_ERR_RANGE;
        }
        uint64_t most = spec_burst_max(&spec);
        if (burst > most) {
            snprintf(reason->text, sizeof reason->text,
                     "the burst is too large: a bucket of this rate holds at most %llu",
                     (unsigned long long)most);
            return WEIR_ERR_RANGE;
        }
        spec.burst = burst;
        int err = weir_adhoc_limits_find(redis->shared->limits, redis->worker->store,
                                         redis->worker->local, &spec, NULL, &found, reason);
        if (err < 0)
            return err;
        *cached = (struct weir_adhoc_cached){burst, count, c, found};
    }
    *limit = cached->limit;
    return 0;
}

void weir_adhoc_limit_error(struct weir_resp_call *call, int err, const char *prefix,
                            const struct weir_reason *reason)
{
    if (err == WEIR_ERR_FULL)
        weir_resp_error(call, "ERR too many distinct limits");
    else
        weir_resp_error(call, "%s%s", prefix,
                        reason->text[0] ? reason->text : weir_error_text(err));
}

/* --- Replies ---------------------------------------------------------------------------------- */

static void write_five(struct weir_slot *slot, struct weir_output *output, int64_t a, uint64_t b,
                       uint64_t c, int64_t d, int64_t e)
{
    char *out = output->data + output->used;
    out = WEIR_LITERAL_WRITE(out, "*5\r\n");
    out = weir_resp_write_integer(out, a);
    out = weir_resp_write_integer(out, (int64_t)b); /* capacities are at most 2^40 */
    out = weir_resp_write_integer(out, (int64_t)c);
    out = weir_resp_write_integer(out, d);
    out = weir_resp_write_integer(out, e);
    output->used = (size_t)(out - output->data);
    weir_worker_give(slot->connection->worker, slot->decision);
}

/* redis-cell and GCRA: limited, limit, remaining, retry_after, reset_after. */
static void cell_write(struct weir_slot *slot, struct weir_output *output)
{
    struct weir_report report;
    bool allowed = slot->decision->verdict != WEIR_DENIED;
    weir_decision_report(slot->decision, 0, &report);
    write_five(slot, output, !allowed, report.limit, report.remaining,
               allowed ? -1 : weir_resp_seconds(report.retry_after_ns),
               weir_resp_seconds(report.reset_after_ns));
}

/* throttlecrab tells as reset_after when it would forget the key: burst - 2 intervals after the
 * bucket is full again, in whole seconds cut off. Kept, since its clients know it so; but never so
 * low that the bucket is not full by then, and 0 for a full one. */
static int64_t crab_reset(const struct weir_limit *limit, uint64_t reset_after_ns)
{
    int64_t full = weir_resp_seconds(reset_after_ns);
    if (full == 0 || limit->spec.burst < 2)
        return full;
    uint64_t rest;
    struct wide span = wide_multiply(limit->spec.window_ns, limit->spec.burst - 2);
    uint64_t more_ns = wide_divide(span.hi, span.lo, limit->spec.rate, &rest);
    int64_t kept = (int64_t)((more_ns + reset_after_ns) / SECOND_NS);
    return kept > full ? kept : full;
}

/* throttlecrab: allowed, limit, remaining, reset_after, retry_after. */
static void crab_write(struct weir_slot *slot, struct weir_output *output)
{
    struct weir_report report;
    bool allowed = slot->decision->verdict != WEIR_DENIED;
    weir_decision_report(slot->decision, 0, &report);
    int64_t retry = weir_resp_seconds(report.retry_after_ns);
    write_five(slot, output, allowed, report.limit, report.remaining,
               crab_reset(slot->decision->checks[0].limit, report.reset_after_ns),
               retry < 0 ? NEVER_SECONDS : retry);
}

/* --- Commands --------------------------------------------------------------------------------- */

void weir_resp_cl_throttle(struct weir_resp_call *call)
{
    const struct weir_limit *limit;
    struct weir_reason reason;
    reason.text[0] = '\0';
    int64_t n[4] = {0, 0, 0, 1}; /* max_burst, count, period, quantity */
    if (call->count < 5 || call->count > 6) {
        weir_resp_error(call, CELL "Usage: cl.throttle <key> <max_burst> <count per period> "
                                   "<period> [<quantity>]");
        return;
    }
    for (uint32_t i = 2; i < call->count; i++) {
        if (weir_resp_number(call->args[i], &n[i - 2]))
            continue;
        weir_resp_error(call, CELL "Couldn't parse as integer: %.*s",
                        WEIR_RESP_SHOWN(call->args[i]));
        return;
    }
    if (n[1] == 0 || n[2] == 0) {
        weir_resp_error(call, CELL "Zero rates are not supported");
    } else if (n[0] < 0 || n[1] < 0 || n[2] < 0) {
        weir_resp_error(call, CELL "Negative %s are not supported", n[0] < 0 ? "bursts" : "rates");
    } else {
        int err = weir_resp_bucket(call->redis, (uint64_t)n[0] + 1, (uint64_t)n[1], (uint64_t)n[2],
                                   SECOND_NS, &limit, &reason);
        if (err < 0)
            weir_adhoc_limit_error(call, err, CELL, &reason);
        else
            weir_resp_decide(call, WEIR_RESP_BUCKETS, call->args[1], limit,
                             n[3] < 0 ? WEIR_OP_REFUND : WEIR_OP_DECIDE,
                             n[3] < 0 ? 0 - (uint64_t)n[3] : (uint64_t)n[3], cell_write);
    }
}

void weir_resp_throttle(struct weir_resp_call *call)
{
    static const char *const names[] = {"max_burst", "count_per_period", "period", "quantity"};
    const struct weir_limit *limit;
    struct weir_reason reason;
    reason.text[0] = '\0';
    int64_t n[4] = {0, 0, 0, 1};
    if (call->count < 5 || call->count > 6) {
        weir_resp_wrong_arity(call);
        return;
    }
    if (!call->args[1].data) {
        weir_resp_error(call, "ERR invalid key");
        return;
    }
    for (uint32_t i = 2; i < call->count; i++) {
        if (weir_resp_number(call->args[i], &n[i - 2]))
            continue;
        weir_resp_error(call, "ERR invalid %s", names[i - 2]);
        return;
    }
    if (n[3] < 0) {
        weir_resp_error(call, "ERR Rate limit check failed: negative quantity: %lld",
                        (long long)n[3]);
    } else if (n[0] <= 0 || n[1] <= 0 || n[2] <= 0) {
        weir_resp_error(call, "ERR Rate limit check failed: invalid rate limit parameters");
    } else {
        int err = weir_resp_bucket(call->redis, (uint64_t)n[0], (uint64_t)n[1], (uint64_t)n[2],
                                   SECOND_NS, &limit, &reason);
        if (err < 0)
            weir_adhoc_limit_error(call, err, "ERR Rate limit check failed: ", &reason);
        else
            weir_resp_decide(call, WEIR_RESP_BUCKETS, call->args[1], limit, WEIR_OP_DECIDE,
                             (uint64_t)n[3], crab_write);
    }
}

/* A period in seconds, with a fraction if it has one; to the nanosecond. */
static bool period_read(struct weir_bytes arg, uint64_t *window_ns)
{
    char text[64], *end;
    if (arg.size == 0 || arg.size >= sizeof text || !strchr("+-.0123456789", arg.data[0]))
        return false;
    memcpy(text, arg.data, arg.size);
    text[arg.size] = '\0';
    double seconds = strtod(text, &end);
    if (end != text + arg.size || !(seconds > 0 && seconds < 1e12))
        return false;
    seconds *= 1e9;
    *window_ns = seconds < 9e18 ? (uint64_t)llround(seconds) : UINT64_MAX >> 1;
    return *window_ns > 0;
}

/* What GCRA is given beside its key: burst, tokens, period, cost. Answers what is wrong. */
static bool gcra_read(struct weir_resp_call *call, int64_t n[3], uint64_t *window_ns)
{
    const struct weir_bytes *args = call->args;
    n[2] = 1;
    if (!weir_resp_number(args[2], &n[0]) || n[0] < 0)
        weir_resp_error(call, "ERR max_burst is not an integer or out of range");
    else if (!weir_resp_number(args[3], &n[1]) || n[1] < 1)
        weir_resp_error(call, "ERR tokens_per_period is not an integer or out of range");
    else if (!period_read(args[4], window_ns))
        weir_resp_error(call, "ERR period must be > 0 and < 1e12");
    else if (call->count > 5 && !weir_resp_is(args[5], "TOKENS"))
        weir_resp_syntax_error(call);
    else if (call->count == 6)
        weir_resp_error(call, "ERR Missing TOKENS value");
    else if (call->count > 7)
        weir_resp_syntax_error(call);
    else if (call->count == 7 && (!weir_resp_number(args[6], &n[2]) || n[2] < 1))
        weir_resp_error(call, "ERR TOKENS is not an integer or out of range");
    else
        return true;
    return false;
}

void weir_resp_gcra(struct weir_resp_call *call)
{
    const struct weir_limit *limit;
    struct weir_reason reason;
    reason.text[0] = '\0';
    uint64_t window_ns;
    int64_t n[3];
    if (!gcra_read(call, n, &window_ns))
        return;
    int err = weir_resp_bucket(call->redis, (uint64_t)n[0] + 1, (uint64_t)n[1], window_ns, 1,
                               &limit, &reason);
    if (err < 0)
        weir_adhoc_limit_error(call, err, "ERR ", &reason);
    else
        weir_resp_decide(call, WEIR_RESP_BUCKETS, call->args[1], limit, WEIR_OP_DECIDE,
                         (uint64_t)n[2], cell_write);
}
