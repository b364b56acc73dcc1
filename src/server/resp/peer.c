/* SPDX-License-Identifier: Apache-2.0 */
/* see peer.h */
#include "server/resp/peer.h"

#include "core/text/reason.h"
#include "feature/sticky/rules/sticky.h"
#include "feature/sticky/store/sticky.h"
#include "server/resp/reply.h"
#include "table/table.h"

_Static_assert(WEIR_RESP_BULK_MAX(STICKY_ANSWER_MAX) <= WEIR_REPLY_MAX, "grow WEIR_REPLY_MAX");

/* A quota by its numbers: a caller's own, or of another file. Limits that are kept by their numbers
 * may outlive the rules, so one with boundaries that need none gives the place in the table, and a
 * copy for this decision has the calendar. */
static int find_quota(struct weir_resp_call *call, struct sticky_check *read,
                      const struct weir_limit **limit, struct weir_reason *reason)
{
    static const uint64_t any[WEIR_BOUNDS_MIN] = {0, 1};
    struct weir_worker *worker = call->redis->worker;
    struct weir_limit_spec spec = read->spec;
    spec.bounds = any;
    spec.bound_count = WEIR_BOUNDS_MIN;
    if (!weir_rules_quota_bounds(weir_worker_rules(worker), read->name, &read->spec)) {
        reason_text(reason, "this node's rules have no quota of that name and calendar");
        return WEIR_ERR_NOT_FOUND;
    }
    int err = weir_adhoc_limits_find(call->redis->shared->limits, worker->local, NULL, &spec, NULL,
                                     limit, reason);
    if (err < 0)
        return err;
    read->made = **limit;
    read->made.spec.bounds = read->spec.bounds;
    read->made.spec.bound_count = read->spec.bound_count;
    *limit = &read->made;
    return 0;
}

/* By these rules, else by the numbers: the file of the node that asks may be another one. */
static int find_limit(void *context, struct sticky_check *read, const struct weir_limit **limit,
                      struct weir_reason *reason)
{
    struct weir_resp_call *call = context;
    struct weir_worker *worker = call->redis->worker;
    *limit = weir_rules_limit_like(weir_worker_rules(worker), read->name, &read->spec);
    if (*limit)
        return 0;
    if (read->spec.algorithm == WEIR_QUOTA)
        return find_quota(call, read, limit, reason);
    return weir_adhoc_limits_find(call->redis->shared->limits, worker->local, NULL, &read->spec,
                                  NULL, limit, reason);
}

void weir_resp_decide_for_peer(struct weir_resp_call *call)
{
    struct weir_worker *worker = call->redis->worker;
    struct weir_reason reason = {{0}};
    char answer[STICKY_ANSWER_MAX];
    if (!worker->remote_store || !weir_worker_settings(worker)->sticky.by) {
        weir_resp_error(call,
                        "ERR WEIR.DECIDE is for nodes of a fleet: this node was started without "
                        "the section `sticky`");
        return;
    }
    if (!weir_listener_trusts(call->connection->listener)) {
        weir_resp_error(call, "ERR WEIR.DECIDE is for nodes of a fleet: this listener is not "
                              "`trusted`");
        return;
    }
    uint64_t now_ns = call->redis->clock(worker);
    long size = sticky_decide(worker->local, weir_table_secret(worker->table), call->args[1],
                              now_ns, find_limit, call, answer, &reason);
    if (size > 0)
        weir_resp_bulk(call, (struct weir_bytes){answer, (size_t)size});
    else
        weir_resp_error(call, "ERR WEIR.DECIDE: %s",
                        reason.text[0] ? reason.text : weir_error_text((int)size));
}
