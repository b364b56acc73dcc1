/* SPDX-License-Identifier: Apache-2.0 */
/* WEIR.CHECKALL n key max_burst count period quantity …: n buckets as CL.THROTTLE names them, one
 * decision: all are charged or none is. See resp.h. */
#include "server/resp/checkall.h"

#include <stdio.h>

#include "server/resp/decide.h"
#include "server/resp/reply.h"
#include "server/resp/throttle.h"

#define FIELDS 5 /* of one limit */

/* "n" groups; each refusal names the group, counted from 1. */
struct checkall {
    struct weir_resp_call *call;
    struct weir_decision *decision;
};

static bool check_fill(struct checkall *all, uint32_t group, const struct weir_bytes *args)
{
    static const char *const names[] = {"max_burst", "count", "period", "quantity"};
    struct weir_resp_call *call = all->call;
    struct weir_check *checks = all->decision->checks;
    struct weir_reason reason = {{0}};
    int64_t n[FIELDS - 1];
    for (uint32_t i = 0; i < FIELDS - 1; i++) {
        int64_t min = i == 1 || i == 2; /* a rate must not be zero */
        if (weir_resp_number(args[1 + i], &n[i]) && n[i] >= min)
            continue;
        weir_resp_error(call, "ERR limit %u: %s is not an integer or out of range", group + 1,
                        names[i]);
        return false;
    }
    struct weir_check *check = &checks[group];
    const struct weir_limit *limit;
    int err = weir_resp_bucket(call->redis, (uint64_t)n[0] + 1, (uint64_t)n[1], (uint64_t)n[2],
                               UINT64_C(1000000000), &limit, &reason);
    if (err < 0) {
        char prefix[32];
        snprintf(prefix, sizeof prefix, "ERR limit %u: ", group + 1);
        weir_adhoc_limit_error(call, err, prefix, &reason);
        return false;
    }
    if (!weir_resp_fill_check(call, all->decision, (uint16_t)group, WEIR_RESP_BUCKETS, args[0],
                              limit))
        return false;
    check->cost = (uint64_t)n[3];
    for (uint32_t i = 0; i < group; i++) {
        if (checks[i].hash[0] != check->hash[0] || checks[i].hash[1] != check->hash[1])
            continue;
        weir_resp_error(call, "ERR limits %u and %u have the same key; give each its own", i + 1,
                        group + 1);
        return false;
    }
    return true;
}

/* As CL.THROTTLE answers for each limit, but in milliseconds. */
static void checkall_write(struct weir_slot *slot, struct weir_output *output)
{
    const struct weir_decision *decision = slot->decision;
    bool allowed = decision->verdict != WEIR_DENIED;
    int version = slot->flags;
    int64_t retry_after_ms = 0;
    struct weir_report report;
    if (decision->denied_by != UINT16_MAX) {
        weir_decision_report(decision, decision->denied_by, &report);
        retry_after_ms = weir_resp_milliseconds(report.retry_after_ns);
    }
    char *out = output->data + output->used;
    out = weir_resp_write_map(out, version, 4);
    out = WEIR_RESP_WRITE_WORD(out, "allowed");
    out = weir_resp_write_boolean(out, version, allowed);
    out = WEIR_RESP_WRITE_WORD(out, "denied_by");
    out = weir_resp_write_integer(out, decision->denied_by != UINT16_MAX ? decision->denied_by
                                                                         : (int64_t)-1);
    out = WEIR_RESP_WRITE_WORD(out, "retry_after_ms");
    out = weir_resp_write_integer(out, retry_after_ms);
    out = WEIR_RESP_WRITE_WORD(out, "limits");
    out = weir_resp_write_array(out, decision->count);
    for (uint16_t i = 0; i < decision->count; i++) {
        bool admits = decision->outcomes[i].verdict != WEIR_DENIED;
        weir_decision_report(decision, i, &report);
        out = weir_resp_write_array(out, FIELDS);
        out = weir_resp_write_integer(out, !admits);
        out = weir_resp_write_integer(out, (int64_t)report.limit);
        out = weir_resp_write_integer(out, (int64_t)report.remaining);
        out = weir_resp_write_integer(out, weir_resp_milliseconds(report.retry_after_ns));
        out = weir_resp_write_integer(out, weir_resp_milliseconds(report.reset_after_ns));
    }
    output->used = (size_t)(out - output->data);
    weir_worker_give(slot->connection->worker, slot->decision);
}

void weir_resp_checkall(struct weir_resp_call *call)
{
    int64_t n;
    if (call->count < 2) {
        weir_resp_wrong_arity(call);
        return;
    }
    if (!weir_resp_number(call->args[1], &n) || n < 1 || n > WEIR_CHECKS_MAX) {
        weir_resp_error(call, "ERR the number of limits must be 1 to %d", WEIR_CHECKS_MAX);
        return;
    }
    if (call->count != 2 + (uint32_t)n * FIELDS) {
        weir_resp_error(call,
                        "ERR %lld limits of key, max_burst, count, period and quantity are "
                        "%lld arguments",
                        (long long)n, (long long)n * FIELDS);
        return;
    }
    struct checkall all = {call, weir_worker_take(call->redis->worker)};
    if (!all.decision) { /* not after weir_worker_has_room */
        weir_resp_error(call, "ERR overloaded");
        return;
    }
    for (uint32_t group = 0; group < n; group++) {
        if (check_fill(&all, group, &call->args[2 + group * FIELDS]))
            continue;
        weir_worker_give(call->redis->worker, all.decision);
        return;
    }
    all.decision->count = (uint16_t)n;
    weir_resp_wait(call, all.decision, checkall_write);
}
