/* SPDX-License-Identifier: Apache-2.0 */
/* see peer.h */
#include "server/resp/peer.h"

#include "rules/sticky/sticky.h"
#include "server/resp/reply.h"
#include "store/sticky/sticky.h"

_Static_assert(WEIR_RESP_BULK_MAX(STICKY_ANSWER_MAX) <= WEIR_REPLY_MAX, "grow WEIR_REPLY_MAX");

/* By these rules, else by the numbers: the file of the node that asks may be another one. */
static int find_limit(void *context, const struct sticky_check *read, uint8_t flags,
                      const struct weir_limit **limit, struct weir_reason *reason)
{
    const struct weir_resp_call *call = context;
    struct weir_worker *worker = call->redis->worker;
    (void)flags;
    *limit = weir_rules_limit_like(weir_worker_rules(worker), read->name, &read->spec);
    if (*limit)
        return 0;
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
