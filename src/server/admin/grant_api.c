/* SPDX-License-Identifier: Apache-2.0 */
/* POST /v1/limits/{name}/grant?key=…&units=N: tops a key up by giving back at most what it has
 * used, so that it is never better than fresh. See docs/http-api.md. */
#include "server/admin/grant_api.h"

#include <stdio.h>
#include <string.h>

#include "server/admin/access.h"
#include "server/admin/call.h"
#include "server/http/reply.h"
#include "server/http/request.h"
#include "server/region/acted.h"

/* What was granted, to whom: the line that an operator looks for afterwards. */
static void grant_log(struct weir_worker *worker, const struct weir_decision *decision,
                      const struct weir_answer *answer)
{
    const struct weir_bytes *name = &answer->limits[0].name, *key = &decision->checks[0].key;
    struct weir_log_line line;
    weir_log_begin(&line, worker->log, WEIR_LOG_INFO, "granted");
    weir_log_bytes(&line, "limit", name->data, name->size);
    weir_log_bytes(&line, "key", key->data, key->size);
    weir_log_number(&line, "units", (int64_t)answer->limits[0].cost);
    weir_log_number(&line, "remaining", (int64_t)answer->limits[0].report.remaining);
    weir_log_end(&line);
}

static void grant_write(struct weir_slot *slot, struct weir_output *output)
{
    struct weir_http *http = weir_connection_workspace(slot->connection);
    const struct weir_decision *decision = slot->decision;
    bool granted = false;
    char acted[WEIR_ACTED_MAX];
    if (decision->error) {
        weir_http_write_problem(slot, output, WEIR_HTTP_503, weir_error_text(decision->error));
        weir_worker_give(http->worker, slot->decision);
        return;
    }
    for (uint16_t i = 0; i < decision->count; i++)
        granted = granted || decision->outcomes[i].charged;
    weir_engine_answer(decision, &http->answer, http->lease);
    if (granted)
        grant_log(http->worker, decision, &http->answer);
    if (weir_acted_problem(decision, acted)) {
        weir_http_write_problem(slot, output, WEIR_HTTP_503, acted);
        weir_worker_give(http->worker, slot->decision);
        return;
    }
    size_t size = weir_answer_json_write(&http->answer, http->json);
    const char *begin = granted ? "{\"granted\":true," : "{\"granted\":false,";
    weir_http_begin(http, output, WEIR_HTTP_200, slot->detail, slot->flags);
    size_t regions = weir_acted_json(decision, acted);
    weir_http_end(output, "application/json", strlen(begin) + regions + size - 1);
    weir_output_text(output, begin);
    weir_output_put(output, acted, regions);
    weir_output_put(output, http->json + 1, size - 1);
    weir_worker_give(http->worker, slot->decision);
}

/* 1 to WEIR_BUCKET_MAX; 0: it is none. */
static uint64_t units_parse(struct weir_bytes text)
{
    uint64_t units = 0;
    for (size_t i = 0; i < text.size && units <= WEIR_BUCKET_MAX; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return 0;
        units = units * 10 + (uint64_t)(text.data[i] - '0');
    }
    return units <= WEIR_BUCKET_MAX ? units : 0;
}

static int grant_read(struct weir_http_call *call, uint32_t rule, struct weir_decision *decision,
                      struct weir_reason *reason)
{
    struct weir_bytes text = {0};
    int err = weir_admin_read_key(call, rule, decision, &text, reason);
    uint64_t units = units_parse(text);
    if (err < 0)
        return err;
    if (units == 0) {
        snprintf(reason->text, sizeof reason->text, "units: must be 1 to 2^40");
        return WEIR_ERR_RANGE;
    }
    for (uint16_t i = 0; i < decision->count; i++) {
        uint32_t algorithm = decision->checks[i].limit->spec.algorithm;
        if (algorithm == WEIR_CONCURRENCY || algorithm == WEIR_SLIDING_LOG) {
            snprintf(reason->text, sizeof reason->text, "a %s cannot be topped up; reset its state",
                     weir_algorithm_name((enum weir_algorithm)algorithm));
            return WEIR_ERR_SYNTAX;
        }
        decision->checks[i].cost = units;
    }
    decision->op = WEIR_OP_REFUND;
    weir_engine_reach_homes(decision);
    decision->charged_at_ns =
        weir_engine_store_time(call->worker->engine, weir_worker_time(call->worker));
    return 0;
}

void weir_grant_handle(struct weir_http_call *call, uint32_t rule)
{
    struct weir_reason reason = {{0}};
    if (!weir_http_allow(call, "POST", NULL) || !weir_admin_may_change(call))
        return;
    struct weir_decision *decision = weir_worker_take(call->worker);
    if (!decision) {
        weir_http_problem(call, WEIR_HTTP_503, NULL, "overloaded");
        return;
    }
    int err = grant_read(call, rule, decision, &reason);
    if (err == 0) {
        weir_http_wait(call, decision, grant_write);
        return;
    }
    weir_worker_give(call->worker, decision);
    weir_http_refuse(call, err, &reason);
}
