/* SPDX-License-Identifier: Apache-2.0 */
/* see limit_api.h */
#include "server/http/limit_api.h"

#include "server/http/check_api.h"
#include "server/http/reply.h"
#include "server/http/request.h"

static const char not_trusted[] =
    "this listener is not trusted, and callers of /v1/limit choose their limits: set `trusted: "
    "true` under server.http";

static void limit_write(struct weir_slot *slot, struct weir_output *output)
{
    struct weir_http *http = weir_connection_workspace(slot->connection);
    weir_request_limit_names names;
    weir_engine_answer(slot->decision, &http->answer, http->lease);
    weir_request_limits_name(slot->decision, slot->outcome != 0, &http->answer, names);
    weir_check_write_answer(slot, output, weir_worker_rules(http->worker),
                            (struct weir_bytes){NULL, 0});
}

static void limit_decide(struct weir_http_call *call)
{
    struct weir_http *http = call->http;
    struct weir_reason reason = {{0}};
    struct weir_decision *decision = weir_worker_take(call->worker);
    if (!decision) { /* not after weir_worker_has_room */
        weir_http_problem(call, WEIR_HTTP_503, NULL, "overloaded");
        return;
    }
    int err = weir_request_limits_decide(&http->limits, &http->given, decision, &reason);
    if (err < 0) {
        weir_worker_give(call->worker, decision);
        if (err == WEIR_ERR_FULL)
            weir_http_problem(call, WEIR_HTTP_503, NULL, reason.text);
        else
            weir_http_refuse(call, err, &reason);
        return;
    }
    struct weir_slot *slot = weir_http_wait(call, decision, limit_write);
    if (slot)
        slot->outcome = http->given.listed;
}

void weir_limit_handle(struct weir_http_call *call)
{
    struct weir_reason reason = {{0}};
    struct weir_bytes body = call->request->body;
    if (!weir_http_json_post(call))
        return;
    if (!weir_listener_trusts(call->connection->listener)) {
        weir_http_problem(call, WEIR_HTTP_403, NULL, not_trusted);
        return;
    }
    int err = weir_limits_json_parse((char *)(uintptr_t)body.data, body.size, &call->http->given,
                                     &reason);
    if (err < 0)
        weir_http_refuse(call, err, &reason);
    else
        limit_decide(call);
}
