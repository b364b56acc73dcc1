/* SPDX-License-Identifier: Apache-2.0 */
/* POST /v1/check and /v1/release: an application asks about a request of its own. See http.h and
 * docs/http-api.md. */
#include "server/http/check_api.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "engine/http/check_request.h"
#include "feature/adaptive/server/released.h"
#include "server/http/batch.h"
#include "server/http/reply.h"
#include "server/http/request.h"

/* --- Requests --------------------------------------------------------------------------------- */

/* Fills http->attributes from http->check. */
static int check_read(struct weir_http_call *call, struct weir_reason *reason)
{
    struct weir_http *http = call->http;
    const struct weir_check_json *check = &http->check;
    bool trusted = weir_listener_trusts(call->connection->listener);
    if (check->has_t || check->status || check->latency_ms) {
        snprintf(reason->text, sizeof reason->text,
                 check->has_t ? "t: only allowed in replay traces"
                              : "status, latency_ms: only allowed in replay traces");
        return WEIR_ERR_SYNTAX;
    }
    int err = weir_check_request_fill(
        &http->attributes, weir_worker_rules(call->worker), check, weir_trust_of(trusted),
        (struct weir_room){http->joined, sizeof http->joined}, reason);
    weir_connection_tell_peer(call->connection, &http->attributes);
    return err;
}

/* Reads the header Idempotency-Key: `*key` is its value, in http->idempotency_key, or absent. */
static int key_field_read(struct weir_http_call *call, struct weir_bytes *key,
                          struct weir_reason *reason)
{
    struct weir_bytes field = call->request->idempotency_key;
    bool repeated = call->request->idempotency_key_repeated;
    *key = (struct weir_bytes){0};
    if (!field.data)
        return 0;
    long size = weir_idempotency_key_parse(field, call->http->idempotency_key);
    if (size > 0 && !repeated) {
        *key = (struct weir_bytes){call->http->idempotency_key, (size_t)size};
        return 0;
    }
    snprintf(reason->text, sizeof reason->text, "Idempotency-Key: %s",
             repeated ? "repeated header" : "must be 1 to 255 visible characters");
    return WEIR_ERR_SYNTAX;
}

/* The key of a single check may be in its body or in the header; both must be the same. */
static int key_field_apply(struct weir_http_call *call, struct weir_reason *reason)
{
    struct weir_bytes *key = &call->http->check.idempotency_key, field;
    int err = key_field_read(call, &field, reason);
    if (err < 0 || !field.data)
        return err;
    if (!key->data) {
        *key = field;
        return 0;
    }
    if (key->size == field.size && !memcmp(key->data, field.data, field.size))
        return 0;
    snprintf(reason->text, sizeof reason->text,
             "idempotency_key: differs from the header Idempotency-Key");
    return WEIR_ERR_SYNTAX;
}

/* Makes the decision that http->check asks for, not yet queued. */
int weir_check_decision(struct weir_http_call *call, struct weir_decision **out,
                        struct weir_reason *reason)
{
    int err = check_read(call, reason);
    if (err < 0)
        return err;
    struct weir_decision *decision = weir_worker_take(call->worker);
    if (!decision)
        return WEIR_ERR_MEMORY; /* not after weir_worker_has_room */
    if (call->http->check.dry_run)
        decision->op = WEIR_OP_PEEK;
    struct weir_bytes key = call->http->check.idempotency_key;
    err = weir_engine_apply_rules(call->worker->engine, decision, &call->http->attributes, reason);
    if (err == 0 && key.data)
        err = weir_engine_apply_idempotency(call->worker->engine, decision, key, reason);
    if (err < 0) {
        weir_worker_give(call->worker, decision);
        return err;
    }
    *out = decision;
    return 0;
}

int weir_check_only_decision(struct weir_http_call *call, struct weir_decision **out,
                             struct weir_reason *reason)
{
    if (!call->http->check.has_life)
        return weir_check_decision(call, out, reason);
    snprintf(reason->text, sizeof reason->text, "life: only allowed in /v1/reserve");
    return WEIR_ERR_SYNTAX;
}

/* --- Replies ---------------------------------------------------------------------------------- */

/* The body: the answer; where no store has answered, what any denial says then. */
static struct weir_bytes make_body(struct weir_http *http, bool closed, struct weir_bytes *type)
{
    static const char json[] = "application/json";
    struct weir_denial_body denial;
    *type = (struct weir_bytes){json, sizeof json - 1};
    if (!closed)
        return (struct weir_bytes){
            http->json, weir_check_answer_write(&http->answer, http->denial, http->json)};
    weir_denial_body_write(&http->answer, 503, http->json, &denial);
    *type = denial.type;
    return denial.text;
}

/* The body is made first, since the head has its length. */
void weir_check_write_answer(struct weir_slot *slot, struct weir_output *output,
                             const struct weir_rules *rules, struct weir_bytes added)
{
    struct weir_http *http = weir_connection_workspace(slot->connection);
    struct weir_worker *worker = http->worker;
    const struct weir_answer *answer = &http->answer;
    bool closed = !answer->allowed && answer->source == WEIR_SOURCE_CLOSED;
    enum weir_http_status status = closed            ? WEIR_HTTP_503
                                   : answer->allowed ? WEIR_HTTP_200
                                                     : WEIR_HTTP_429;
    struct weir_bytes type, body = make_body(http, closed, &type);
    weir_http_begin(http, output, status, slot->detail, slot->flags);
    if (!answer->allowed)
        weir_output_text(output, "Cache-Control: no-store\r\n");
    output->used += weir_ratelimit_headers_write(weir_rules_settings(rules)->headers, answer,
                                                 worker->wall_s, output->data + output->used);
    weir_http_end_typed(output, type, body.size + added.size);
    if (added.size > 0) {
        weir_output_put(output, body.data, body.size - 1);
        weir_output_put(output, added.data, added.size);
        weir_output_put(output, "}", 1);
    } else {
        weir_output_put(output, body.data, body.size);
    }
    weir_worker_give(worker, slot->decision);
}

static void single_write(struct weir_slot *slot, struct weir_output *output)
{
    struct weir_http *http = weir_connection_workspace(slot->connection);
    struct weir_worker *worker = http->worker;
    struct weir_answer *answer = &http->answer;
    if (weir_engine_refusal(slot->decision)) {
        weir_http_write_refusal(slot, output, slot->decision);
        weir_worker_give(worker, slot->decision);
        return;
    }
    weir_engine_answer(slot->decision, answer, http->lease);
    weir_check_write_answer(slot, output, weir_decision_rules(slot->decision),
                            (struct weir_bytes){NULL, 0});
}

/* --- Handlers --------------------------------------------------------------------------------- */

static void check_single(struct weir_http_call *call)
{
    struct weir_reason reason;
    reason.text[0] = '\0';
    struct weir_decision *decision = NULL;
    int err = key_field_apply(call, &reason);
    if (err == 0)
        err = weir_check_only_decision(call, &decision, &reason);
    if (err < 0) {
        weir_http_refuse(call, err, &reason);
        return;
    }
    weir_http_wait(call, decision, single_write);
}

void weir_check_handle(struct weir_http_call *call)
{
    if (!weir_http_json_post(call))
        return;
    struct weir_reason reason;
    reason.text[0] = '\0';
    struct weir_check_cursor cursor;
    struct weir_bytes body = call->request->body;
    weir_check_cursor_init(&cursor, (char *)(uintptr_t)body.data, body.size);
    if (weir_check_cursor_is_array(&cursor)) {
        weir_check_batch_handle(call, &cursor);
        return;
    }
    int err = weir_check_cursor_next(&cursor, &call->http->check, &reason);
    if (err < 0)
        weir_http_refuse(call, err, &reason);
    else
        check_single(call);
}

static void release_write(struct weir_slot *slot, struct weir_output *output)
{
    static const char done[] = "{\"released\":true}";
    const struct weir_decision *decision = slot->decision;
    weir_released_tell(slot->connection->worker, decision, (uint32_t)slot->outcome);
    if (decision->error)
        weir_http_write_problem(slot, output, WEIR_HTTP_503, weir_error_text(decision->error));
    else if (decision->verdict == WEIR_DENIED)
        weir_http_write_problem(slot, output, WEIR_HTTP_404,
                                "no such lease: it has ended or expired");
    else
        weir_http_write(slot, output, WEIR_HTTP_200, "application/json", done, sizeof done - 1);
    weir_worker_give(slot->connection->worker, slot->decision);
}

void weir_release_handle(struct weir_http_call *call)
{
    if (!weir_http_json_post(call))
        return;
    struct weir_reason reason;
    reason.text[0] = '\0';
    struct weir_release_json release;
    struct weir_bytes body = call->request->body;
    int err = weir_release_json_parse((char *)(uintptr_t)body.data, body.size, &release, &reason);
    if (err < 0) {
        weir_http_refuse(call, err, &reason);
        return;
    }
    struct weir_decision *decision = weir_worker_take(call->worker);
    if (!decision) {
        weir_http_problem(call, WEIR_HTTP_503, NULL, "overloaded");
        return;
    }
    err = weir_engine_apply_lease(call->worker->engine, decision, release.lease);
    if (err == 0) {
        struct weir_slot *slot = weir_http_wait(call, decision, release_write);
        if (slot)
            slot->outcome = release.status;
        return;
    }
    weir_worker_give(call->worker, decision);
    weir_http_problem(call, WEIR_HTTP_400, NULL, "lease: not a lease token");
}
