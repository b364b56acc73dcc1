/* SPDX-License-Identifier: Apache-2.0 */
/* see difficulty.h */
#include "feature/challenge/server/difficulty.h"

#include "feature/score/rules/score.h"
#include "server/http/request.h"

/* The request as the rules see it: without a path, which is the listener's own. */
static const struct weir_request *read_request(struct weir_http_call *call,
                                               const struct weir_address *client)
{
    struct weir_request *attributes = &call->http->attributes;
    enum weir_trust trust = weir_http_begin_request(call);
    for (uint16_t i = 0; i < call->request->field_count; i++) {
        const struct weir_http1_field *field = &call->request->fields[i];
        weir_request_put_field(attributes, field->name, field->value, trust);
    }
    weir_request_put(attributes, weir_source_fixed(WEIR_ATTR_METHOD), call->request->method, trust);
    weir_request_put(attributes, weir_source_fixed(WEIR_ATTR_HOST), call->request->host, trust);
    weir_request_put_client(attributes, client);
    return attributes;
}

/* A client whom nothing is known of now, be it for lack of memory, is legitimate. */
static uint8_t find_class(struct weir_http_call *call, const struct weir_address *client)
{
    struct weir_reason reason;
    uint8_t class = WEIR_CLASS_LEGITIMATE;
    struct weir_decision *decision = weir_worker_take(call->worker);
    if (!decision)
        return class;
    decision->op = WEIR_OP_LOOK; /* what the client has done so far */
    if (weir_engine_apply_rules(call->worker->engine, decision, read_request(call, client),
                                &reason) == 0) {
        const struct weir_caller_score *score = weir_decision_score(decision);
        class = score ? score->class : class;
    }
    weir_worker_give(call->worker, decision);
    return class;
}

uint8_t weir_challenge_difficulty(struct weir_http_call *call, const struct weir_address *client)
{
    const struct weir_challenge_settings *settings = &weir_worker_settings(call->worker)->challenge;
    return settings->difficulty[settings->by_class ? find_class(call, client) : 0];
}
