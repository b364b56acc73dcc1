/* SPDX-License-Identifier: Apache-2.0 */
/* see report_api.h */
#include "server/http/report_api.h"

#include <stdio.h>

#include "feature/adaptive/server/controllers.h"
#include "rules/charge/settle.h"
#include "server/http/check_api.h"
#include "server/http/reply.h"
#include "server/http/request.h"
#include "server/http/reserve_api.h"
#include "wire/json/settle.h"

/* What is in flight at a limit, this request included; only concurrency limits know. */
static uint32_t in_flight(const struct weir_decision *decision, uint16_t i)
{
    const struct weir_limit *limit = decision->checks[i].limit;
    struct weir_report report;

    if (!limit || limit->spec.algorithm != WEIR_CONCURRENCY || decision->error != 0)
        return WEIR_IN_FLIGHT_UNKNOWN;
    weir_decision_report_whole(decision, i, &report);
    return report.limit > report.remaining ? (uint32_t)(report.limit - report.remaining) : 0;
}

/* The limits that applied, and penalties, learn how the request ended. Returns how many there are.
 */
static uint32_t tell_limits(struct weir_worker *worker, const struct weir_decision *decision,
                            uint64_t outcome)
{
    struct weir_ended ended = weir_ended_unpack(outcome, weir_worker_time(worker));
    uint64_t caller = weir_decision_caller(decision);
    uint32_t limits = 0;

    for (uint16_t i = 0; i < weir_decision_limits(decision); limits++) {
        uint32_t rule = decision->checks[i].rule;

        ended.in_flight = in_flight(decision, i);
        ended.caller = caller != 0 ? caller : decision->checks[i].hash[0];
        if (worker->controllers)
            weir_controllers_ended(worker->controllers, weir_decision_rules(decision), rule,
                                   &ended);
        i = weir_decision_limit_end(decision, i);
    }
    if (weir_engine_strike_outcome(worker->engine, decision, ended.status) > 0)
        weir_worker_run_engine(worker); /* a remote store counts them then */
    return limits;
}

static void report_write(struct weir_slot *slot, struct weir_output *output)
{
    struct weir_http *http = weir_connection_workspace(slot->connection);
    char text[64];

    if (weir_engine_refusal(slot->decision)) {
        weir_http_write_refusal(slot, output, slot->decision);
    } else {
        int size = snprintf(text, sizeof text, "{\"reported\":true,\"limits\":%u}",
                            tell_limits(http->worker, slot->decision, slot->outcome));

        weir_http_write(slot, output, WEIR_HTTP_200, "application/json", text, (size_t)size);
    }
    weir_worker_give(http->worker, slot->decision);
}

/* Reads the body into http->check. Errors: WEIR_ERR_SYNTAX, WEIR_ERR_RANGE. */
static int report_read(struct weir_http_call *call, uint64_t *outcome, struct weir_reason *reason)
{
    struct weir_check_json *check = &call->http->check;
    struct weir_check_cursor cursor;
    struct weir_bytes body = call->request->body;

    weir_check_cursor_init(&cursor, (char *)(uintptr_t)body.data, body.size);

    int more = weir_check_cursor_next(&cursor, check, reason);

    if (more < 0)
        return more;
    if (more == 0 || cursor.array) {
        snprintf(reason->text, sizeof reason->text, "one request is required, not a list");
        return WEIR_ERR_SYNTAX;
    }
    if (check->status < WEIR_STATUS_MIN || check->status > WEIR_STATUS_MAX) {
        snprintf(reason->text, sizeof reason->text, "status: required, 100 to 599");
        return WEIR_ERR_SYNTAX;
    }
    if (check->has_life || check->dry_run || check->idempotency_key.data) {
        snprintf(reason->text, sizeof reason->text,
                 "life, dry_run, idempotency_key: not allowed in a report");
        return WEIR_ERR_SYNTAX;
    }

    *outcome =
        weir_ended_pack((uint32_t)check->status, check->latency_ms ? &check->latency_ms : NULL);
    check->status = check->latency_ms = 0; /* a check has none */
    return 0;
}

/* A client that reports requests without proof of them can lower limits, and hold strikes against
 * anyone. */
static const char not_trusted[] =
    "this listener is not trusted, and a report without a reservation may be of any request: set "
    "`trusted: true` under server.http, or report the token of a reservation";

static void report_request(struct weir_http_call *call)
{
    struct weir_reason reason = {{0}};
    struct weir_decision *decision;
    uint64_t outcome = 0;

    if (!weir_listener_trusts(call->connection->listener)) {
        weir_http_problem(call, WEIR_HTTP_403, NULL, not_trusted);
        return;
    }

    int err = report_read(call, &outcome, &reason);

    if (err == 0)
        err = weir_check_decision(call, &decision, &reason);
    if (err < 0) {
        weir_http_refuse(call, err, &reason);
        return;
    }
    decision->op = WEIR_OP_PEEK;

    struct weir_slot *slot = weir_http_wait(call, decision, report_write);

    if (slot)
        slot->outcome = outcome;
}

void weir_report_handle(struct weir_http_call *call)
{
    struct weir_bytes body = call->request->body;

    if (!weir_http_json_post(call))
        return;
    if (weir_settle_json_has_reservation(body.data, body.size))
        weir_report_settle(call);
    else
        report_request(call);
}
