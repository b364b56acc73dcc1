/* SPDX-License-Identifier: Apache-2.0 */
/* see call.h */
#include "server/admin/call.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/bytes.h"
#include "rules/match/key_values.h"
#include "server/http/reply.h"
#include "server/http/request.h"

void weir_admin_reply_json(struct weir_http_call *call, json_t *value)
{
    char *text = value ? json_dumps(value, JSON_COMPACT) : NULL;
    if (text)
        weir_http_reply(call, WEIR_HTTP_200, NULL, "application/json", text, strlen(text));
    else
        weir_http_problem(call, WEIR_HTTP_500, NULL, "out of memory");
    free(text);
    json_decref(value);
}

/* Reads ?key=…&key=…&plan=…&user=… into the check of that key. */
int weir_admin_read_key(struct weir_http_call *call, uint32_t rule, struct weir_decision *decision,
                        struct weir_bytes *units, struct weir_reason *reason)
{
    struct weir_key_values values = {.needs_plan = units != NULL}; /* it changes the state */
    struct weir_bytes query = call->request->query, name, value;
    char *at = call->http->joined;
    while (weir_http_next_parameter(&query, &name, &value)) {
        long size = weir_http_decode(value, at); /* never longer than the request's head */
        if (size < 0) {
            snprintf(reason->text, sizeof reason->text, "query: invalid percent-encoding");
            return WEIR_ERR_SYNTAX;
        }
        struct weir_bytes decoded = {at, (size_t)size};
        at += size;
        if (weir_bytes_are(name, "plan")) {
            values.plan = decoded;
        } else if (weir_bytes_are(name, "user")) {
            values.user = decoded;
        } else if (weir_bytes_are(name, "key") && values.count < WEIR_KEY_VALUES_MAX) {
            if (weir_bytes_are(value, "-"))
                decoded = (struct weir_bytes){0}; /* as key texts show a missing one */
            values.values[values.count++] = decoded;
        } else if (units && weir_bytes_are(name, "units")) {
            *units = decoded;
        } else {
            snprintf(reason->text, sizeof reason->text, "query: unknown parameter; use key, plan%s",
                     units ? ", user or units" : " or user");
            return WEIR_ERR_SYNTAX;
        }
    }
    int err = weir_engine_apply_key(call->worker->engine, decision, rule, &values, reason);
    if (err == 0 && !decision->checks[0].limit) {
        snprintf(reason->text, sizeof reason->text, "this key is unlimited and has no state");
        err = WEIR_ERR_SYNTAX;
    }
    return err;
}
