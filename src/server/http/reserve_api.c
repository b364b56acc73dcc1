/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/reserve, /v1/settle, /v1/report: a request that is charged at an estimate, and what it has
 * cost in truth. See http.h, feature/reserve/engine/reservation.h and docs/reservations.md. */
#include "server/http/reserve_api.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "feature/adaptive/server/controllers.h"
#include "feature/reserve/server/reserve.h"
#include "server/http/check_api.h"
#include "server/http/reply.h"
#include "server/http/request.h"
#include "wire/json/settle.h"

/* What the answer of a reservation adds to that of a check. */
#define ADDED_MAX (WEIR_RESERVATION_TEXT_MAX + 64)
_Static_assert(WEIR_HTTP_HEAD_ROOM + WEIR_RATELIMIT_HEADERS_MAX + WEIR_LEASE_TOKEN_MAX +
                       WEIR_CHECK_ANSWER_MAX + ADDED_MAX <=
                   WEIR_REPLY_MAX,
               "grow WEIR_REPLY_MAX");

/* One limit of the answer to a settlement: a name and four numbers. */
#define SETTLED_LIMIT_MAX 256
_Static_assert(WEIR_CHECKS_MAX *SETTLED_LIMIT_MAX + 256 <= WEIR_ANSWER_JSON_MAX,
               "http->json takes the answer to a settlement");

_Static_assert(WEIR_JSON_COSTS_MAX == WEIR_TRUE_COSTS_MAX, "what is read is settled");

/* --- Reserving -------------------------------------------------------------------------------- */

static int reserve_refuse(const struct weir_http_call *call, struct weir_reason *reason)
{
    const struct weir_check_json *check = &call->http->check;
    bool keyed =
        check->idempotency_key.data || weir_http1_field(call->request, "idempotency-key").data;
    if (check->dry_run) {
        snprintf(reason->text, sizeof reason->text, "dry_run: not allowed here; use /v1/check");
        return WEIR_ERR_SYNTAX;
    }
    if (keyed) {
        snprintf(reason->text, sizeof reason->text,
                 "idempotency_key: not allowed here; a reservation whose answer is lost is "
                 "released when its life ends");
        return WEIR_ERR_SYNTAX;
    }
    if (check->cost == 0) {
        snprintf(reason->text, sizeof reason->text, "cost: must be at least 1");
        return WEIR_ERR_RANGE;
    }
    if (check->has_life && (check->life_ns < WEIR_RESERVATION_LIFE_MIN_NS ||
                            check->life_ns > WEIR_RESERVATION_LIFE_MAX_NS)) {
        snprintf(reason->text, sizeof reason->text, "life: must be 1 to 3600 seconds");
        return WEIR_ERR_RANGE;
    }
    return 0;
}

/* The answer of a check; where it allows, with the token. */
static void reserve_write(struct weir_slot *slot, struct weir_output *output)
{
    struct weir_http *http = weir_connection_workspace(slot->connection);
    char token[WEIR_RESERVATION_TEXT_MAX], added[ADDED_MAX];
    int added_size = 0;
    uint64_t life_ns;
    weir_engine_answer(slot->decision, &http->answer, http->lease);
    size_t size = weir_reserve_finish(slot, token, &life_ns);
    if (weir_engine_refusal(slot->decision)) {
        weir_http_write_refusal(slot, output, slot->decision);
        weir_worker_give(http->worker, slot->decision);
        return;
    }
    if (http->answer.allowed)
        added_size = snprintf(added, sizeof added, ",\"reservation\":\"%.*s\",\"life_ms\":%" PRIu64,
                              (int)size, token, life_ns / 1000000);
    weir_check_write_answer(slot, output, weir_decision_rules(slot->decision),
                            (struct weir_bytes){added, (size_t)added_size});
}

void weir_reserve_handle(struct weir_http_call *call)
{
    struct weir_reason reason = {{0}};
    struct weir_check_cursor cursor;
    struct weir_bytes body = call->request->body;
    struct weir_check_json *check = &call->http->check;
    struct weir_reserve reserve = {.decision = NULL};
    if (!weir_http_json_post(call))
        return;
    weir_check_cursor_init(&cursor, (char *)(uintptr_t)body.data, body.size);
    int err = weir_check_cursor_next(&cursor, check, &reason);
    if (cursor.array) {
        weir_http_problem(call, WEIR_HTTP_400, NULL, "a reservation takes one check, not a batch");
        return;
    }
    if (err >= 0)
        err = reserve_refuse(call, &reason);
    if (err >= 0)
        err = weir_check_decision(call, &reserve.decision, &reason);
    reserve.estimate = check->cost;
    reserve.life_ns = check->has_life ? check->life_ns : WEIR_RESERVATION_LIFE_NS;
    if (err >= 0)
        err = weir_reserve_begin(call->connection, &reserve, &reason);
    if (err < 0) {
        if (reserve.decision)
            weir_worker_give(call->worker, reserve.decision);
        if (err == WEIR_ERR_FULL)
            weir_http_problem(call, WEIR_HTTP_503, NULL, reason.text);
        else
            weir_http_refuse(call, err, &reason);
        return;
    }
    struct weir_slot *slot = weir_http_slot(call);
    if (!slot) {
        weir_reserve_cancel(call->worker, &reserve);
        return;
    }
    slot->detail = call->route;
    slot->write = reserve_write;
    weir_reserve_wait(slot, &reserve);
}

/* --- Settling --------------------------------------------------------------------------------- */

static size_t settled_body(struct weir_http *http, const struct weir_decision *decision,
                           const struct weir_settled *settled)
{
    char *out = http->json;
    out += sprintf(out, "{\"settled\":true,\"repeated\":%s,\"capped\":%s,\"gone\":%u,\"limits\":[",
                   settled->repeated ? "true" : "false", settled->capped ? "true" : "false",
                   settled->gone);
    for (uint16_t i = 0; i < settled->count;) {
        struct weir_settled_limit limit;
        const char *comma = i > 0 ? "," : "";
        i = weir_settled_limit(decision, settled, i, &limit);
        out += sprintf(out,
                       "%s{\"name\":\"%s\",\"%s\":%" PRIu64 ",\"dropped\":%" PRIu64
                       ",\"limit\":%" PRIu64 ",\"remaining\":%" PRIu64 "}",
                       comma, limit.name, limit.charged ? "charged" : "refunded", limit.amount,
                       limit.dropped, limit.report.limit,
                       limit.report.remaining); /* a name is [a-z0-9._-]: nothing to escape */
    }
    out += sprintf(out, "]}");
    return (size_t)(out - http->json);
}

/* The limits of the reservation learn how the request ended, once. */
static void tell_limits(struct weir_worker *worker, const struct weir_slot *slot,
                        const struct weir_settled *settled)
{
    struct weir_ended ended = weir_ended_unpack(slot->outcome, weir_worker_time(worker));
    const struct weir_rules *rules = weir_engine_rules(worker->engine);
    struct weir_settled_part limits[WEIR_CHECKS_MAX];
    if (!worker->controllers || settled->repeated || (ended.status == 0 && !ended.has_latency))
        return;
    uint16_t count = weir_engine_settled_limits(worker->engine, slot->decision, limits);
    for (uint16_t i = 0; i < count; i++) {
        ended.caller = limits[i].caller;
        weir_controllers_ended(worker->controllers, rules, limits[i].rule, &ended);
    }
}

static void settle_write(struct weir_slot *slot, struct weir_output *output)
{
    struct weir_http *http = weir_connection_workspace(slot->connection);
    struct weir_settled settled;
    weir_settle_finish(http->worker, slot->decision, &settled);
    if (!settled.failed && !settled.kept)
        tell_limits(http->worker, slot, &settled);
    if (settled.failed || settled.kept)
        weir_http_write_problem(slot, output, WEIR_HTTP_503,
                                settled.kept ? WEIR_SETTLE_KEPT : WEIR_SETTLE_FAILED);
    else
        weir_http_write(slot, output, WEIR_HTTP_200, "application/json", http->json,
                        settled_body(http, slot->decision, &settled));
    weir_worker_give(http->worker, slot->decision);
}

static void settle_handle(struct weir_http_call *call, bool report)
{
    struct weir_reason reason = {{0}};
    struct weir_settle_json read;
    struct weir_bytes body = call->request->body;
    int err = weir_settle_json_parse((char *)(uintptr_t)body.data, body.size, &read, &reason);
    if (err == 0 && report && (read.status == 0 || read.has_cost || read.has_costs)) {
        snprintf(reason.text, sizeof reason.text,
                 read.status == 0 ? "status: required; to settle by cost, use /v1/settle"
                                  : "cost, costs: to settle by cost, use /v1/settle");
        err = WEIR_ERR_SYNTAX;
    }
    if (err < 0) {
        weir_http_refuse(call, err, &reason);
        return;
    }
    struct weir_true_cost costs[WEIR_TRUE_COSTS_MAX];
    struct weir_settle settle = {.cost = read.cost,
                                 .status = read.status,
                                 .how = read.has_cost    ? WEIR_SETTLE_COST
                                        : read.has_costs ? WEIR_SETTLE_COSTS
                                                         : WEIR_SETTLE_STATUS};
    for (uint16_t i = 0; i < read.costs.count && err == 0; i++)
        if (!weir_settle_add(call->worker, &settle, costs, read.costs.of[i].name,
                             read.costs.of[i].amount, &reason))
            err = WEIR_ERR_SYNTAX;
    if (err < 0) {
        weir_http_refuse(call, err, &reason);
        return;
    }
    struct weir_decision *decision = weir_worker_take(call->worker);
    if (!decision) {
        weir_http_problem(call, WEIR_HTTP_503, NULL, "overloaded");
        return;
    }
    err = weir_settle_begin(call->worker, decision, read.reservation, &settle);
    if (err == 0) {
        struct weir_slot *slot = weir_http_wait(call, decision, settle_write);
        if (slot)
            slot->outcome =
                weir_ended_pack(read.status, read.has_latency ? &read.latency_ms : NULL);
        return;
    }
    weir_worker_give(call->worker, decision);
    if (err == WEIR_ERR_NOT_FOUND)
        weir_http_problem(call, WEIR_HTTP_409, NULL, WEIR_SETTLE_LATE);
    else if (err == WEIR_ERR_STORE)
        weir_http_problem(call, WEIR_HTTP_503, NULL, WEIR_SETTLE_UNKNOWN);
    else
        weir_http_problem(call, WEIR_HTTP_400, NULL, WEIR_SETTLE_NONE);
}

void weir_settle_handle(struct weir_http_call *call)
{
    if (weir_http_json_post(call))
        settle_handle(call, false);
}

void weir_report_settle(struct weir_http_call *call)
{
    settle_handle(call, true);
}
