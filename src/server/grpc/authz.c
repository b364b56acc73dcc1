/* SPDX-License-Identifier: Apache-2.0 */
/* envoy.service.auth.v3.Authorization: Envoy's ext_authz onto the rules. See grpc.h and
 * docs/deploy/envoy.md.
 *
 * What the caller says of the request counts as what a caller of /v1/check says: method, path,
 * host, headers, address. context_extensions are its attributes (rules/source.h). */
#include "server/grpc/authz.h"

#include <stdio.h>
#include <string.h>

#include "core/bytes.h"
#include "engine/http/denial.h"
#include "rules/actions/steps.h"
#include "rules/source.h"
#include "server/grpc/reply.h"
#include "server/grpc/stream.h"
#include "server/net/overlooked.h"
#include "wire/decimal.h"
#include "wire/grpc/authz.h"

/* --- Requests --------------------------------------------------------------------------------- */

/* proto3 has no absent texts: an empty one counts as absent. */
static struct weir_bytes present(struct weir_bytes text)
{
    return text.size ? text : (struct weir_bytes){NULL, 0};
}

/* What the rules cannot read is the client's doing, and is denied: an error would let it pass where
 * Envoy's failure_mode_allow says so. */
static void deny_unread(struct weir_grpc_stream *stream, unsigned http_status, const char *text)
{
    static const char type_name[] = "Content-Type", type[] = "application/problem+json";
    struct weir_grpc *grpc = weir_grpc_of(stream);
    struct weir_worker *worker = stream->connection->worker;
    struct weir_grpc_pair field = {{type_name, sizeof type_name - 1}, {type, sizeof type - 1}};
    struct weir_grpc_authz_response response = {
        .status = WEIR_GRPC_INVALID_ARGUMENT, .http_status = http_status, .headers = {&field, 1}};
    struct weir_bytes out;
    if (worker->overlooked)
        weir_overlooked_unread(worker->overlooked, worker->log, WEIR_UNREAD_AUTHZ, text,
                               uv_now(worker->loop));
    response.body.data = grpc->json;
    response.body.size =
        weir_problem_json_write(WEIR_PROBLEM_BLANK, http_status, text, NULL, grpc->json);
    if (weir_grpc_authz_write(&response, &stream->arena, &out) < 0)
        weir_grpc_fail(stream, WEIR_GRPC_RESOURCE_EXHAUSTED, "the answer is too large");
    else
        weir_grpc_reply(stream, out);
}

/* Fills the worker's request. Errors: as weir_request_end. */
static int request_fill(struct weir_grpc_stream *stream,
                        const struct weir_grpc_authz_request *asked, struct weir_reason *reason)
{
    static const char principal[] = "source.principal";
    struct weir_grpc *grpc = weir_grpc_of(stream);
    struct weir_request *request = &grpc->attributes;
    const struct weir_rules *rules = weir_worker_rules(stream->connection->worker);
    enum weir_trust trust = weir_trust_of(weir_listener_trusts(stream->connection->listener));
    weir_request_begin(request, rules, WEIR_FIELDS_ALL,
                       (struct weir_room){grpc->joined, sizeof grpc->joined});
    for (size_t i = 0; i < asked->headers.count; i++)
        weir_request_put_field(request, asked->headers.list[i].name, asked->headers.list[i].value,
                               trust);
    weir_request_put(request, weir_source_fixed(WEIR_ATTR_METHOD), present(asked->method), trust);
    weir_request_put(request, weir_source_fixed(WEIR_ATTR_PATH), present(asked->path), trust);
    weir_request_put(request, weir_source_fixed(WEIR_ATTR_HOST), present(asked->host), trust);
    weir_request_put(request, weir_source_fixed(WEIR_ATTR_CLIENT_IP), present(asked->source),
                     trust);
    struct weir_attribute_source source = weir_rules_source(rules, principal, sizeof principal - 1);
    source.flags |= WEIR_NAME_OF_REQUEST; /* the configuration goes before it */
    weir_request_put(request, source, present(asked->principal), trust);
    for (size_t i = 0; i < asked->extensions.count; i++)
        weir_request_put_name(request, asked->extensions.list[i].name,
                              asked->extensions.list[i].value, trust);
    weir_connection_tell_peer(stream->connection, request);
    return weir_request_end(request, reason);
}

void weir_grpc_authz_take(struct weir_grpc_stream *stream, struct weir_bytes message)
{
    struct weir_grpc_authz_request *asked = weir_grpc_arena_take(&stream->arena, sizeof *asked);
    int err = asked ? weir_grpc_authz_read(asked, message, &stream->arena) : WEIR_ERR_TOO_LARGE;
    if (err < 0)
        weir_grpc_fail_read(stream, err);
    stream->request = asked;
}

/* What the rules will not decide, or could not, in the end (`late`: it is counted already). */
static void refuse(struct weir_grpc_stream *stream, int err, const char *text, bool late)
{
    bool unread = err == WEIR_ERR_SYNTAX || err == WEIR_ERR_RANGE || err == WEIR_ERR_TOO_LARGE;
    if (unread && !late)
        weir_count_unread(&stream->connection->worker->counters,
                          stream->connection->listener->kind);
    if (err == WEIR_ERR_SYNTAX || err == WEIR_ERR_RANGE)
        deny_unread(stream, 400, text);
    else if (err == WEIR_ERR_TOO_LARGE)
        deny_unread(stream, 413, text);
    else
        weir_grpc_fail(stream, WEIR_GRPC_UNAVAILABLE, text);
}

void weir_grpc_authz_begin(struct weir_grpc_stream *stream)
{
    struct weir_worker *worker = stream->connection->worker;
    struct weir_reason reason = {{0}};
    int err = request_fill(stream, stream->request, &reason);
    if (err < 0) {
        refuse(stream, err, reason.text, false);
        return;
    }
    struct weir_decision *decision = weir_grpc_take(stream);
    if (!decision)
        return;
    err = weir_engine_apply_rules(worker->engine, decision, &weir_grpc_of(stream)->attributes,
                                  &reason);
    if (err == 0) {
        weir_grpc_wait_one(stream, decision);
        return;
    }
    weir_worker_give(worker, decision);
    refuse(stream, err, reason.text[0] ? reason.text : weir_error_text(err), false);
}

/* --- Responses -------------------------------------------------------------------------------- */

/* Fields that a response may have: four lines of each dialect, those of the denial, and those that
 * finish adds. */
#define FIELDS_ADDED 6
#define FIELDS_MAX (20 + WEIR_REJECT_HEADERS_MAX + FIELDS_ADDED)

/* Takes "Name: value\r\n" lines apart. */
static size_t fields_of(const char *lines, size_t size, struct weir_grpc_pair *fields)
{
    size_t count = 0;
    while (size && count < FIELDS_MAX - FIELDS_ADDED) {
        const char *end = memchr(lines, '\r', size), *colon = memchr(lines, ':', size);
        fields[count++] = (struct weir_grpc_pair){
            {lines, (size_t)(colon - lines)},
            {colon + 2, (size_t)(end - colon - 2)},
        };
        size -= (size_t)(end + 2 - lines);
        lines = end + 2;
    }
    return count;
}

static void field_add(struct weir_grpc_pair *fields, size_t *count, const char *name,
                      struct weir_bytes value)
{
    fields[(*count)++] = (struct weir_grpc_pair){{name, strlen(name)}, value};
}

/* The action, and how long it holds the request; `room` is for that number. */
static void action_add(const struct weir_answer *answer, struct weir_grpc_pair *fields,
                       size_t *count, char room[24])
{
    const char *name = weir_action_name(answer->action);
    if (answer->action == WEIR_ACTION_NONE)
        return;
    field_add(fields, count, "X-Weir-Action", weir_bytes_of(name));
    if (!weir_action_holds(answer->action))
        return;
    uint64_t delay_ms = answer->delay_ns / 1000000 + (answer->delay_ns % 1000000 != 0);
    char *end = weir_decimal_write(room, delay_ms);
    field_add(fields, count, "X-Weir-Delay-Ms", (struct weir_bytes){room, (size_t)(end - room)});
}

/* The service believes these fields, so it gets none that the client has made up. */
static void remove_others(const struct weir_rules *rules, const struct weir_grpc_pair *fields,
                          size_t count, struct weir_grpc_authz_response *response)
{
    bool acts = weir_rules_acts(rules);
    bool stands = (weir_rules_settings(rules)->headers & WEIR_HEADERS_STANDING) != 0;
    const struct {
        const char *name;
        bool wanted;
    } ours[] = {{"X-Weir-Lease", true},
                {"X-Weir-Action", acts},
                {"X-Weir-Delay-Ms", acts},
                {"X-RateLimit-Standing", stands}};
    _Static_assert(sizeof ours / sizeof *ours <= WEIR_GRPC_AUTHZ_REMOVE_MAX, "room for all");
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) {
        size_t at = 0;
        while (at < count && !weir_bytes_are(fields[at].name, ours[i].name))
            at++;
        if (ours[i].wanted && at == count)
            response->remove[response->remove_count++] = ours[i].name;
    }
}

/* What google.rpc.Status says of a denial. */
static int denial_code(const struct weir_answer *answer)
{
    if (answer->standing.refused)
        return WEIR_GRPC_PERMISSION_DENIED;
    return answer->source == WEIR_SOURCE_CLOSED ? WEIR_GRPC_UNAVAILABLE
                                                : WEIR_GRPC_RESOURCE_EXHAUSTED;
}

/* Denies as every edge does (engine/http/denial.h), whose header fields are in `fields` already. */
static void response_deny(struct weir_grpc *grpc, struct weir_grpc_authz_response *response,
                          struct weir_grpc_pair *fields, size_t *count)
{
    struct weir_denial_body body;
    response->status = denial_code(&grpc->answer);
    response->http_status = weir_denial_status(&grpc->answer);
    weir_denial_body_write(&grpc->answer, response->http_status, grpc->json, &body);
    response->body = body.text;
    field_add(fields, count, "Content-Type", body.type);
    response->headers = (struct weir_grpc_pairs){fields, *count};
}

void weir_grpc_authz_finish(struct weir_grpc_stream *stream)
{
    struct weir_grpc *grpc = weir_grpc_of(stream);
    struct weir_decision *decision = stream->call;
    struct weir_grpc_authz_response response = {.status = WEIR_GRPC_OK};
    struct weir_grpc_pair fields[FIELDS_MAX];
    struct weir_bytes out;
    const struct weir_reason *refusal = weir_engine_refusal(decision);
    stream->call = NULL;
    if (refusal) {
        refuse(stream, decision->error, refusal->text, true);
        weir_worker_give(grpc->worker, decision);
        return;
    }
    weir_engine_answer(decision, &grpc->answer, grpc->lease);
    uint32_t dialects = weir_rules_settings(weir_decision_rules(decision))->headers;
    size_t size =
        weir_ratelimit_headers_write(dialects, &grpc->answer, grpc->worker->wall_s, grpc->headers);
    if (!grpc->answer.allowed)
        size += weir_denial_fields_write(&grpc->answer, grpc->headers + size);
    size_t count = fields_of(grpc->headers, size, fields);
    char delay[24];
    action_add(&grpc->answer, fields, &count, delay);
    response.allowed = grpc->answer.allowed;
    if (response.allowed) {
        response.response_headers = (struct weir_grpc_pairs){fields, count};
        if (grpc->answer.lease.data) /* for the service alone, which ends it */
            field_add(fields, &count, "X-Weir-Lease", grpc->answer.lease);
        remove_others(weir_decision_rules(decision), fields, count, &response);
        response.headers = (struct weir_grpc_pairs){fields, count};
    } else {
        response_deny(grpc, &response, fields, &count);
    }
    if (weir_grpc_authz_write(&response, &stream->arena, &out) < 0)
        weir_grpc_fail(stream, WEIR_GRPC_RESOURCE_EXHAUSTED, "the answer is too large");
    else
        weir_grpc_reply(stream, out);
    weir_worker_give(grpc->worker, decision);
}

void weir_grpc_authz_drop(struct weir_grpc_stream *stream)
{
    struct weir_worker *worker = stream->connection->worker;
    if (!stream->call)
        return;
    weir_worker_cancel(worker, stream->call);
    stream->call = NULL;
}
