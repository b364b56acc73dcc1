/* SPDX-License-Identifier: Apache-2.0 */
/* see call.h */
#include "server/admin/call.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/bytes.h"
#include "rules/match/key_values.h"
#include "rules/problems.h"
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

void weir_admin_write_json(struct weir_slot *slot, struct weir_output *output,
                           enum weir_http_status status, json_t *value)
{
    struct weir_http *http = weir_connection_workspace(slot->connection);
    char *text = value ? json_dumps(value, JSON_COMPACT) : NULL;
    size_t size = text ? strlen(text) : 0;
    if (text) {
        weir_http_begin(http, output, status, slot->detail, slot->flags);
        weir_http_end(output, "application/json", size);
        weir_connection_send(slot->connection, output, text,
                             slot->flags & WEIR_HTTP_HEAD ? 0 : size);
    } else {
        weir_http_write_problem(slot, output, WEIR_HTTP_500, weir_error_text(WEIR_ERR_MEMORY));
    }
    free(text);
    json_decref(value);
}

const char *weir_admin_nearest_limit(const struct weir_rules *rules, struct weir_bytes name)
{
    uint32_t count = weir_rules_count(rules);
    count = count < WEIR_ADMIN_NEAR_MAX ? count : WEIR_ADMIN_NEAR_MAX;
    const char **names = calloc(count + 1, sizeof *names);
    for (uint32_t i = 0; names && i < count; i++) {
        struct weir_rule_info info;
        weir_rules_info(rules, i, &info);
        names[i] = info.name;
    }
    const char *nearest =
        names && name.size > 0 ? rules_nearest(name.data, name.size, names, count) : NULL;
    free(names);
    return nearest;
}

void weir_admin_refuse_limit(struct weir_http_call *call, struct weir_bytes name)
{
    const char *near = weir_admin_nearest_limit(weir_worker_rules(call->worker), name);
    char text[WEIR_REASON_MAX];
    snprintf(text, sizeof text, "no limit of that name%s%.128s%s", near ? "; did you mean `" : "",
             near ? near : "", near ? "`?" : "");
    weir_http_problem(call, WEIR_HTTP_404, NULL, text);
}

/* Whether it is a parameter of the request besides those of the key: takes it in. */
static bool read_ask(struct weir_bytes name, struct weir_bytes value, struct weir_admin_ask *ask)
{
    bool says = weir_bytes_are(value, "true") || weir_bytes_are(value, "false");
    if (weir_bytes_are(name, "above") && says)
        ask->above = weir_bytes_are(value, "true");
    else if (ask->grants && weir_bytes_are(name, "units"))
        ask->units = value;
    else if (ask->grants && weir_bytes_are(name, "expires"))
        ask->expires = value;
    else
        return false;
    return true;
}

/* Makes a decision on a key one on what it was given above its limit. */
static int read_above(struct weir_decision *decision, struct weir_reason *reason)
{
    const struct weir_limit *limit = decision->checks[0].limit;
    if (weir_engine_apply_top_up(decision))
        return 0;
    snprintf(reason->text, sizeof reason->text,
             limit->spec.algorithm == WEIR_CONCURRENCY || limit->spec.algorithm == WEIR_LEAKY_QUEUE
                 ? "above: a %s takes no top-ups; what waits or is in flight cannot be bought"
                 : "above: the limit takes no top-ups; give it `top_up: 366d` in the rules file "
                   "(a %s)",
             weir_algorithm_name(limit->spec.algorithm));
    return WEIR_ERR_SYNTAX;
}

/* Reads ?key=…&key=…&plan=…&user=… into the check of that key. */
int weir_admin_read_key(struct weir_http_call *call, uint32_t rule, struct weir_decision *decision,
                        struct weir_admin_ask *ask, struct weir_reason *reason)
{
    struct weir_key_values values = {.needs_plan = ask->grants}; /* it changes the state */
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
        } else if (!read_ask(name, decoded, ask)) {
            snprintf(reason->text, sizeof reason->text,
                     "query: unknown parameter; use key, plan, user%s",
                     ask->grants ? ", units, above=true or expires" : " or above=true");
            return WEIR_ERR_SYNTAX;
        }
    }
    if (ask->above)
        values.needs_plan = false; /* of all plans there is one */
    int err = weir_engine_apply_key(call->worker->engine, decision, rule, &values, reason);
    if (err == 0 && !decision->checks[0].limit) {
        snprintf(reason->text, sizeof reason->text, "this key is unlimited and has no state");
        err = WEIR_ERR_SYNTAX;
    }
    return err == 0 && ask->above ? read_above(decision, reason) : err;
}

void weir_admin_write_bought(struct weir_slot *slot, struct weir_output *output, const char *begin)
{
    struct weir_http *http = weir_connection_workspace(slot->connection);
    struct weir_report report;
    char text[128];
    weir_decision_report(slot->decision, 0, &report);
    int size =
        snprintf(text, sizeof text, "%s\"bought\":%" PRIu64 ",\"ends_after_ms\":%" PRIu64 "}",
                 begin, report.remaining, report.reset_after_ns / 1000000);
    weir_http_write(slot, output, WEIR_HTTP_200, "application/json", text, (size_t)size);
    weir_worker_give(http->worker, slot->decision);
}
