/* SPDX-License-Identifier: Apache-2.0 */
/* POST /v1/limits/{name}/grant?key=…&units=N: gives back at most what a key has used, so that it is
 * never better than fresh; with above=true gives it units above the limit (rules/charge/top_up.h).
 * See docs/http-api.md. */
#include "server/admin/grant_api.h"

#include <stdio.h>
#include <string.h>

#include "feature/region/server/acted.h"
#include "rules/charge/top_up.h"
#include "rules/load/numbers.h"
#include "server/admin/access.h"
#include "server/admin/call.h"
#include "server/http/reply.h"
#include "server/http/request.h"

#define NS_PER_S UINT64_C(1000000000)
#define LIFE_LEAST_NS (60 * NS_PER_S)
#define LIFE_MOST_NS (UINT64_C(3660) * 86400 * NS_PER_S)

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

static void above_log(struct weir_worker *worker, const struct weir_decision *decision)
{
    const struct weir_check *check = &decision->checks[0];
    struct weir_rule_info info;
    struct weir_report report;
    struct weir_log_line line;
    weir_rules_info(weir_decision_rules(decision), check->rule, &info);
    weir_decision_report(decision, 0, &report);
    weir_log_begin(&line, worker->log, WEIR_LOG_INFO, "granted_above");
    weir_log_bytes(&line, "limit", info.name, strlen(info.name));
    weir_log_bytes(&line, "key", check->key.data, check->key.size);
    weir_log_number(&line, "units", (int64_t)check->cost);
    weir_log_number(&line, "bought", (int64_t)report.remaining);
    weir_log_number(&line, "ends_s",
                    (int64_t)((decision->now_ns + report.reset_after_ns) / NS_PER_S));
    weir_log_end(&line);
}

static void above_write(struct weir_slot *slot, struct weir_output *output)
{
    const struct weir_decision *decision = slot->decision;
    struct weir_http *http = weir_connection_workspace(slot->connection);
    if (!decision->error && decision->outcomes[0].charged) {
        above_log(http->worker, decision);
        weir_admin_write_bought(slot, output, "{\"granted\":true,");
        return;
    }
    weir_http_write_problem(slot, output, WEIR_HTTP_503,
                            decision->error ? weir_error_text(decision->error)
                                            : "nothing was granted: the table has no room for "
                                              "another key, or this one has all that a key can");
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

/* When units end that are given above a limit; `charged_at_ns` says it (core/prepaid.h). */
static int read_end(struct weir_http_call *call, uint32_t rule, const struct weir_admin_ask *ask,
                    struct weir_decision *decision, struct weir_reason *reason)
{
    uint64_t life_ns = weir_rules_top_up_life(weir_decision_rules(decision), rule);
    int err = 0;
    if (ask->expires.data)
        err = weir_duration_parse(&life_ns, ask->expires.data, ask->expires.size, reason);
    if (err == 0 && (life_ns < LIFE_LEAST_NS || life_ns > LIFE_MOST_NS)) {
        snprintf(reason->text, sizeof reason->text, "expires: must be 1min to 3660d");
        err = WEIR_ERR_RANGE;
    }
    if (err < 0)
        return err;
    uint64_t now_ns = weir_engine_store_time(call->worker->engine, weir_worker_time(call->worker));
    decision->op = WEIR_OP_REFUND;
    decision->charged_at_ns = now_ns + life_ns;
    return 0;
}

static int grant_read(struct weir_http_call *call, uint32_t rule, struct weir_admin_ask *ask,
                      struct weir_decision *decision, struct weir_reason *reason)
{
    int err = weir_admin_read_key(call, rule, decision, ask, reason);
    uint64_t units = units_parse(ask->units);
    if (err < 0)
        return err;
    if (units == 0) {
        snprintf(reason->text, sizeof reason->text, "units: must be 1 to 2^40");
        return WEIR_ERR_RANGE;
    }
    if (ask->above) {
        decision->checks[0].cost = units;
        return read_end(call, rule, ask, decision, reason);
    }
    if (ask->expires.data) {
        snprintf(reason->text, sizeof reason->text,
                 "expires: goes with above=true; units that are given back end with their window");
        return WEIR_ERR_SYNTAX;
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
    if (!weir_admin_may_change(call))
        return;
    struct weir_decision *decision = weir_worker_take(call->worker);
    if (!decision) {
        weir_http_problem(call, WEIR_HTTP_503, NULL, "overloaded");
        return;
    }
    struct weir_admin_ask ask = {.grants = true};
    int err = grant_read(call, rule, &ask, decision, &reason);
    if (err == 0) {
        weir_http_wait(call, decision, ask.above ? above_write : grant_write);
        return;
    }
    weir_worker_give(call->worker, decision);
    weir_http_refuse(call, err, &reason);
}
