/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/auth: a reverse proxy asks whether a request may pass (forward authentication). See http.h
 * and docs/http-api.md.
 *
 * Two forms. In the exact path /v1/auth the request is described by header fields (nginx
 * auth_request, Traefik, Caddy, HAProxy). In /v1/auth/… the rest of the path, the method and the
 * Host are the request's own (Envoy's ext_authz with a path_prefix), and such fields are not read:
 * a client may have sent them.
 */
#include "server/http/auth_api.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/bytes.h"
#include "engine/http/denial.h"
#include "rules/counted.h"
#include "server/http/reply.h"
#include "server/http/request.h"
#include "server/net/overlooked.h"
#include "wire/http/forwarded.h"

/* What one request's fields say; data == NULL: nothing. */
struct auth_fields {
    struct weir_bytes method, host, uri;
    struct weir_bytes x_forwarded_for[WEIR_HTTP1_FIELDS_MAX], forwarded[WEIR_HTTP1_FIELDS_MAX];
    size_t x_forwarded_for_count, forwarded_count;
    const char *repeated;  /* a field that came twice: it is not known which one counts */
    const char *differing; /* a field that says something else than its X-Original- counterpart */
};

/* What a field is for. */
enum auth_role { ROLE_METHOD, ROLE_HOST, ROLE_URI, ROLE_X_FORWARDED_FOR, ROLE_FORWARDED };

/* X-Forwarded-* and X-Original-* tell the same thing. A proxy sets the one family or the other and
 * passes on what the client sent of the other one, so where both are there and differ, neither can
 * be believed. */
static const struct auth_name {
    const char *name;
    uint8_t size;
    uint8_t role, rank;
} auth_names[] = {
    {"x-forwarded-method", 18, ROLE_METHOD, 2}, {"x-forwarded-host", 16, ROLE_HOST, 2},
    {"x-forwarded-uri", 15, ROLE_URI, 2},       {"x-forwarded-for", 15, ROLE_X_FORWARDED_FOR, 0},
    {"x-original-method", 17, ROLE_METHOD, 1},  {"x-original-uri", 14, ROLE_URI, 1},
    {"x-original-url", 14, ROLE_URI, 1},        {"forwarded", 9, ROLE_FORWARDED, 0},
};

/* Compares with a lower-case name of the same size, at least 8. Of the characters that a field's
 * name may have, only letters become letters, and only "-" becomes "-", by setting that bit. */
static bool name_is(const char *name, const char *lower, size_t size)
{
    static const uint64_t fold = UINT64_C(0x2020202020202020);
    uint64_t part, wanted;
    for (size_t at = 0; at + 8 < size; at += 8) {
        memcpy(&part, name + at, 8);
        memcpy(&wanted, lower + at, 8);
        if ((part | fold) != wanted)
            return false;
    }
    memcpy(&part, name + size - 8, 8);
    memcpy(&wanted, lower + size - 8, 8);
    return (part | fold) == wanted;
}

static const struct auth_name *auth_name_find(struct weir_bytes name)
{
    if (name.size < 9 || name.size > 18)
        return NULL;
    for (size_t i = 0; i < sizeof auth_names / sizeof *auth_names; i++)
        if (auth_names[i].size == name.size && name_is(name.data, auth_names[i].name, name.size))
            return &auth_names[i];
    return NULL;
}

/* X-Original-URL is a whole URL with some controllers: cuts "https://host" off. */
static struct weir_bytes uri_path(struct weir_bytes uri)
{
    static const char *const schemes[] = {"http://", "https://"};
    for (size_t i = 0; i < 2; i++) {
        size_t size = strlen(schemes[i]);
        if (uri.size < size || strncasecmp(uri.data, schemes[i], size))
            continue;
        const char *slash = memchr(uri.data + size, '/', uri.size - size);
        if (!slash)
            return (struct weir_bytes){"/", 1};
        return (struct weir_bytes){slash, (size_t)(uri.data + uri.size - slash)};
    }
    return uri;
}

static bool tells_the_same(enum auth_role role, struct weir_bytes a, struct weir_bytes b)
{
    if (role == ROLE_URI) {
        a = uri_path(a);
        b = uri_path(b);
    }
    return a.size == b.size && memcmp(a.data, b.data, a.size) == 0;
}

/* Reads the fields that tell of the request, and gives every field to the rules as header.*. */
static void auth_read_fields(struct weir_http_call *call, struct auth_fields *fields,
                             enum weir_trust trust)
{
    struct weir_request *attributes = &call->http->attributes;
    uint8_t ranks[3] = {0};
    struct weir_bytes *singles[] = {&fields->method, &fields->host, &fields->uri};
    for (uint16_t i = 0; i < call->request->field_count; i++) {
        const struct weir_http1_field *field = &call->request->fields[i];
        weir_request_put_field(attributes, field->name, field->value, trust);
        const struct auth_name *name = auth_name_find(field->name);
        if (!name)
            continue;
        if (name->role == ROLE_X_FORWARDED_FOR) {
            fields->x_forwarded_for[fields->x_forwarded_for_count++] = field->value;
        } else if (name->role == ROLE_FORWARDED) {
            fields->forwarded[fields->forwarded_count++] = field->value;
        } else if (name->rank == ranks[name->role]) {
            fields->repeated = name->name;
        } else {
            if (ranks[name->role] != 0 &&
                !tells_the_same(name->role, *singles[name->role], field->value))
                fields->differing = name->name;
            if (name->rank > ranks[name->role]) {
                ranks[name->role] = name->rank;
                *singles[name->role] = field->value;
            }
        }
    }
}

/* The walk over the proxies, from the peer (which is one of them) to the client. */
static int auth_find_client(struct weir_http_call *call, const struct auth_fields *fields,
                            struct weir_reason *reason)
{
    const struct weir_proxies proxies = weir_worker_proxies(call->worker);
    const struct weir_forwarded forwarded = {fields->x_forwarded_for, fields->forwarded,
                                             fields->x_forwarded_for_count,
                                             fields->forwarded_count};
    struct weir_address client = call->connection->peer;
    int err = weir_forwarded_client(&client, &forwarded, &proxies, reason);
    weir_request_put_client(&call->http->attributes, &client);
    return err;
}

/* What the query of /v1/auth asks for. */
struct auth_options {
    uint64_t cost;
    enum weir_http_status deny_status;
};

static bool option_number(struct weir_bytes value, uint64_t *number)
{
    *number = 0;
    for (size_t i = 0; i < value.size; i++) {
        unsigned digit = (unsigned)(value.data[i] - '0');
        if (digit > 9 || __builtin_mul_overflow(*number, 10, number) ||
            __builtin_add_overflow(*number, digit, number))
            return false;
    }
    return value.size > 0;
}

static int auth_read_options(struct weir_bytes query, struct auth_options *options,
                             struct weir_reason *reason)
{
    struct weir_bytes name, value;
    *options = (struct auth_options){.cost = 1, .deny_status = WEIR_HTTP_429};
    bool has_cost = false, has_status = false;
    while (weir_http_next_parameter(&query, &name, &value)) {
        uint64_t number = 0;
        bool *seen = weir_bytes_are(name, "cost")          ? &has_cost
                     : weir_bytes_are(name, "deny_status") ? &has_status
                                                           : NULL;
        if (!seen) {
            snprintf(reason->text, sizeof reason->text,
                     "query: unknown parameter; use cost or deny_status");
            return WEIR_ERR_SYNTAX;
        }
        if (*seen) {
            snprintf(reason->text, sizeof reason->text, "%.*s: duplicate parameter", (int)name.size,
                     name.data);
            return WEIR_ERR_SYNTAX;
        }
        *seen = true;
        if (seen == &has_cost) {
            if (!option_number(value, &options->cost)) {
                snprintf(reason->text, sizeof reason->text, "cost: must be a whole number");
                return WEIR_ERR_RANGE;
            }
        } else {
            if (!option_number(value, &number) ||
                (number != 401 && number != 403 && number != 429)) {
                snprintf(reason->text, sizeof reason->text, "deny_status: must be 401, 403 or 429");
                return WEIR_ERR_RANGE;
            }
            options->deny_status = weir_http_status((unsigned)number);
        }
    }
    return 0;
}

/* What the proxy says in fields is not to be in two minds. */
static int auth_check_fields(const struct auth_fields *fields, struct weir_reason *reason)
{
    if (fields->repeated) {
        snprintf(reason->text, sizeof reason->text, "%s: repeated header", fields->repeated);
        return WEIR_ERR_SYNTAX;
    }
    if (fields->differing) {
        snprintf(reason->text, sizeof reason->text,
                 "%s: the X-Forwarded- and X-Original- headers differ", fields->differing);
        return WEIR_ERR_SYNTAX;
    }
    return 0;
}

/* Fills http->attributes. Errors: WEIR_ERR_SYNTAX, WEIR_ERR_TOO_LARGE. */
static int auth_read(struct weir_http_call *call, struct weir_reason *reason)
{
    struct weir_request *attributes = &call->http->attributes;
    struct weir_bytes method = call->request->method, host = call->request->host;
    struct weir_bytes path = call->tail;
    struct auth_fields fields;
    fields.method = fields.host = fields.uri = (struct weir_bytes){0};
    fields.x_forwarded_for_count = fields.forwarded_count = 0;
    fields.repeated = fields.differing = NULL;
    enum weir_trust trust = weir_http_begin_request(call);
    auth_read_fields(call, &fields, trust);
    int err = auth_find_client(call, &fields, reason);
    if (err < 0)
        return err;
    weir_connection_tell_peer(call->connection, attributes);
    if (!call->tail.size) {
        err = auth_check_fields(&fields, reason);
        if (err < 0)
            return err;
        method = fields.method.data ? fields.method : method;
        host = fields.host.data ? fields.host : host;
        path = fields.uri.data ? uri_path(fields.uri) : (struct weir_bytes){NULL, 0};
    }
    weir_request_put(attributes, weir_source_fixed(WEIR_ATTR_METHOD), method, trust);
    weir_request_put(attributes, weir_source_fixed(WEIR_ATTR_HOST), host, trust);
    weir_request_put(attributes, weir_source_fixed(WEIR_ATTR_PATH), path, trust);
    return weir_request_end(attributes, reason);
}

/* The body of a denial, with its Content-Type, and the end of the head before it. */
static void write_body(struct weir_slot *slot, struct weir_output *output, unsigned code)
{
    struct weir_http *http = weir_connection_workspace(slot->connection);
    struct weir_denial_body body;
    weir_denial_body_write(&http->answer, code, http->json, &body);
    weir_http_end_typed(output, body.type, body.text.size);
    if (!(slot->flags & WEIR_HTTP_HEAD))
        weir_output_put(output, body.text.data, body.text.size);
}

static void write_meant(struct weir_output *output, unsigned meant)
{
    weir_output_text(output, "X-RateLimit-Status: ");
    weir_output_number(output, meant);
    weir_output_put(output, "\r\n", 2);
}

/* Denies for the standing of the caller, in the words of the rules file. Where the proxy has asked
 * for one status of denials, X-RateLimit-Status has the status that is meant. */
static void auth_write_standing(struct weir_slot *slot, struct weir_output *output,
                                uint32_t dialects)
{
    struct weir_http *http = weir_connection_workspace(slot->connection);
    const struct weir_answer *answer = &http->answer;
    enum weir_http_status asked = (enum weir_http_status)(slot->detail >> 8);
    unsigned meant = weir_denial_status(answer);
    weir_http_begin(http, output, asked == WEIR_HTTP_429 ? weir_http_status(meant) : asked,
                    slot->detail & 0xff, slot->flags);
    output->used += weir_ratelimit_headers_write(dialects, answer, http->worker->wall_s,
                                                 output->data + output->used);
    if (asked != WEIR_HTTP_429)
        write_meant(output, meant);
    output->used += weir_denial_fields_write(answer, output->data + output->used);
    write_body(slot, output, meant);
}

/* What the proxy, and the upstream behind it, learn of the action. */
static void write_action(const struct weir_answer *answer, bool held, struct weir_output *output)
{
    weir_output_text(output, "X-Weir-Action: ");
    weir_output_text(output, weir_action_name(answer->action));
    weir_output_put(output, "\r\n", 2);
    if (held || !weir_action_holds(answer->action))
        return;
    weir_output_text(output, "X-Weir-Delay-Ms: ");
    weir_output_number(output, answer->delay_ns / 1000000 + (answer->delay_ns % 1000000 != 0));
    weir_output_put(output, "\r\n", 2);
}

/* The status of a denial. deny_status of the query goes before that of the limit: it is what the
 * proxy understands. Returns the one that the limit means. */
static unsigned choose_status(const struct weir_answer *answer, enum weir_http_status *status)
{
    unsigned meant = weir_denial_status(answer);
    if (*status == WEIR_HTTP_429)
        *status = weir_http_status(meant);
    return meant;
}

static void write_denial(struct weir_slot *slot, struct weir_output *output, unsigned meant,
                         enum weir_http_status status)
{
    struct weir_http *http = weir_connection_workspace(slot->connection);
    const struct weir_answer *answer = &http->answer;
    if (weir_http_code(status) != meant || (!answer->reject && status != WEIR_HTTP_429))
        write_meant(output, meant);
    output->used += weir_denial_fields_write(answer, output->data + output->used);
    write_body(slot, output, weir_http_code(status));
}

/* Counts and logs a request that was refused because it cannot be read; `err` may be another one.
 */
/* Returns whether it is the client's doing. */
static bool note_unread(struct weir_worker *worker, int err, const struct weir_reason *reason)
{
    bool unread = err == WEIR_ERR_SYNTAX || err == WEIR_ERR_TOO_LARGE || err == WEIR_ERR_RANGE;
    if (unread && worker->overlooked)
        weir_overlooked_unread(worker->overlooked, worker->log, WEIR_UNREAD_AUTH,
                               reason->text[0] ? reason->text : weir_error_text(err),
                               uv_now(worker->loop));
    return unread;
}

static void auth_write(struct weir_slot *slot, struct weir_output *output)
{
    struct weir_http *http = weir_connection_workspace(slot->connection);
    struct weir_worker *worker = http->worker;
    struct weir_answer *answer = &http->answer;
    if (weir_engine_refusal(slot->decision)) {
        (void)note_unread(worker, slot->decision->error, weir_engine_refusal(slot->decision));
        slot->detail &= 0xff;
        weir_http_write_refusal(slot, output, slot->decision);
        weir_worker_give(worker, slot->decision);
        return;
    }
    weir_engine_answer(slot->decision, answer, http->lease);
    uint32_t dialects = weir_rules_settings(weir_decision_rules(slot->decision))->headers;
    if (answer->standing.refused) {
        auth_write_standing(slot, output, dialects);
        weir_worker_give(worker, slot->decision);
        return;
    }
    enum weir_http_status status = WEIR_HTTP_200;
    unsigned meant = 200;
    if (!answer->allowed) {
        status = (enum weir_http_status)(slot->detail >> 8);
        meant = choose_status(answer, &status);
    }
    weir_http_begin(http, output, status, slot->detail & 0xff, slot->flags);
    output->used +=
        weir_ratelimit_headers_write(dialects, answer, worker->wall_s, output->data + output->used);
    if (answer->action != WEIR_ACTION_NONE)
        write_action(answer, (slot->flags & WEIR_HTTP_HELD) != 0, output);
    if (answer->allowed) {
        if (answer->lease.data) {
            weir_output_text(output, "X-Weir-Lease: ");
            weir_output_put(output, answer->lease.data, answer->lease.size);
            weir_output_put(output, "\r\n", 2);
        }
        weir_http_end(output, NULL, 0);
    } else {
        write_denial(slot, output, meant, status);
    }
    weir_worker_give(worker, slot->decision);
}

/* The decision is made: whether its reply is held back. */
static bool auth_hold(struct weir_slot *slot)
{
    struct weir_http *http = weir_connection_workspace(slot->connection);
    struct weir_answer *answer = &http->answer;
    slot->again = NULL;
    if (weir_engine_refusal(slot->decision))
        return false;
    weir_engine_answer(slot->decision, answer, http->lease);
    uint32_t prefix = answer->allowed ? WEIR_HOLD_DELAY : slot->place;
    if (answer->delay_ns == 0 || answer->repeated ||
        !weir_holds_take(&http->holds, slot, answer->delay_ns, prefix))
        return false;
    slot->flags |= WEIR_HTTP_HELD;
    return true;
}

/* What cannot be read or decided. */
static void refuse(struct weir_http_call *call, int err, const struct weir_reason *reason)
{
    if (note_unread(call->worker, err, reason))
        weir_count_unread(&call->worker->counters, call->connection->listener->kind);
    weir_http_refuse(call, err, reason);
}

void weir_auth_handle(struct weir_http_call *call)
{
    struct weir_reason reason = {{0}};
    struct weir_address inside;
    struct auth_options options = {.cost = 1, .deny_status = WEIR_HTTP_429};
    if (!weir_worker_trusts(call->worker, &call->connection->peer)) {
        if (call->worker->overlooked)
            weir_overlooked_proxy(call->worker->overlooked, call->worker->log,
                                  &call->connection->peer, uv_now(call->worker->loop));
        weir_http_problem(call, WEIR_HTTP_403, NULL, "the caller is not in server.trusted_proxies");
        return;
    }
    int err = call->tail.size ? 0 : auth_read_options(call->request->query, &options, &reason);
    if (err == 0)
        err = auth_read(call, &reason);
    if (err < 0) {
        refuse(call, err, &reason);
        return;
    }
    call->http->attributes.cost = options.cost;
    struct weir_decision *decision = weir_worker_take(call->worker);
    if (!decision) {
        weir_http_problem(call, WEIR_HTTP_503, NULL, "overloaded");
        return;
    }
    err = weir_engine_apply_rules(call->worker->engine, decision, &call->http->attributes, &reason);
    struct weir_slot *slot = err < 0 ? NULL : weir_http_slot(call);
    if (!slot) {
        weir_worker_give(call->worker, decision);
        if (err < 0)
            refuse(call, err, &reason);
        return;
    }
    slot->decision = decision;
    slot->detail = (uint16_t)(options.deny_status << 8 | call->route);
    slot->write = auth_write;
    if (weir_listener_settings(call->connection->listener)->hold) {
        slot->place = weir_hold_prefix(weir_rules_counted_by(
            weir_worker_rules(call->worker), &call->http->attributes.client, &inside));
        slot->again = auth_hold;
    }
    weir_slot_wait(slot, decision);
}
