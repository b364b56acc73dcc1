/* SPDX-License-Identifier: Apache-2.0 */
/* see request.h */
#include "cli/replay/request.h"

#include <stdio.h>
#include <string.h>

#include "engine/http/check_request.h"
#include "rules/source.h"

/* The core's range of times: below 2^62 ns. */
#define TIME_MAX_NS (UINT64_C(1) << 62)
int replay_request_fill(struct replay_request *out, const struct weir_rules *rules,
                        const struct weir_check_json *check, struct weir_reason *reason)
{
    return weir_check_request_fill(&out->request, rules, check, WEIR_TRUST_RECORDED,
                                   (struct weir_room){out->joined, sizeof out->joined}, reason);
}

void replay_request_begin(struct replay_request *out, const struct weir_rules *rules,
                          struct replay_clients *clients)
{
    out->rules = rules;
    out->clients = clients;
    out->user = weir_rules_source(rules, "user", strlen("user"));
    out->agent = weir_rules_field(rules, "user-agent", strlen("user-agent"));
    out->referer = weir_rules_field(rules, "referer", strlen("referer"));
}

static int fill_from_check(struct replay_request *out, const struct weir_check_json *check,
                           struct weir_reason *reason)
{
    out->check = check;
    out->dry_run = check->dry_run;
    out->status = check->status;
    if (__builtin_mul_overflow(check->latency_ms, UINT64_C(1000000), &out->latency_ns))
        out->latency_ns = UINT64_MAX;
    return replay_request_fill(out, out->rules, check, reason);
}

static void put(struct weir_request *request, struct weir_attribute_source source,
                struct weir_bytes value)
{
    weir_request_put(request, source, value, WEIR_TRUST_RECORDED);
}

/* The header fields that the format has. */
static void put_fields(struct replay_request *out, const struct weir_log_record *record)
{
    if (record->fields == WEIR_LOG_FIELDS_AGENT) {
        put(&out->request, out->agent, record->agent);
        put(&out->request, out->referer, record->referer);
    }
    for (int i = 0; i < record->header_count; i++)
        weir_request_put_field(&out->request, record->headers[i].name, record->headers[i].value,
                               WEIR_TRUST_RECORDED);
}

static int fill_from_log(struct replay_request *out, const struct weir_log_record *record,
                         struct weir_reason *reason)
{
    static const enum weir_fields fields[] = {[WEIR_LOG_FIELDS_NONE] = WEIR_FIELDS_NONE,
                                              [WEIR_LOG_FIELDS_AGENT] = WEIR_FIELDS_LOG,
                                              [WEIR_LOG_FIELDS_ALL] = WEIR_FIELDS_ALL};
    struct weir_request *request = &out->request;
    weir_request_begin(request, out->rules, fields[record->fields],
                       (struct weir_room){out->joined, sizeof out->joined});
    out->check = NULL;
    out->dry_run = false;
    out->status = out->latency_ns = 0;
    put(request, weir_source_fixed(WEIR_ATTR_METHOD), record->method);
    put(request, weir_source_fixed(WEIR_ATTR_PATH), record->target);
    if (record->host.data)
        put(request, weir_source_fixed(WEIR_ATTR_HOST), record->host);
    if (record->user.data)
        put(request, out->user, record->user);
    put_fields(out, record);
    int error = weir_request_end(request, reason);
    if (error == 0)
        error = weir_log_client_read(&out->clients->log, record, &request->client, &out->host_name,
                                     reason);
    if (error == 0 && out->host_name.data) {
        memcpy(out->name, out->host_name.data, out->host_name.size);
        out->host_name.data = out->name;
    }
    return error;
}

int replay_request_parse(struct replay_request *out, const struct replay_line *line,
                         struct weir_reason *reason)
{
    out->host_name = (struct weir_bytes){NULL, 0};
    if (line->kind != REPLAY_REQUEST) {
        snprintf(reason->text, sizeof reason->text, "%s",
                 line->reason ? line->reason : "malformed");
        return WEIR_ERR_SYNTAX;
    }
    out->t_ns = line->t_ns;
    if (out->t_ns >= TIME_MAX_NS) {
        snprintf(reason->text, sizeof reason->text, "t: not before the year 2116");
        return WEIR_ERR_RANGE;
    }
    return line->record->check ? fill_from_check(out, line->record->check, reason)
                               : fill_from_log(out, line->record, reason);
}

static bool is_address_char(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || c == ':';
}

/* Whether `address` is the one of request->host_name, perhaps with its last bits masked (a key of
 * client.ip/64): the first 56 bits of hash are enough to know it by. */
static bool stands_for_name(const struct replay_request *request,
                            const struct weir_address *address)
{
    return address->family == 6 && memcmp(address->bytes, request->request.client.bytes, 8) == 0;
}

struct weir_bytes replay_request_name(const struct replay_request *request, struct weir_bytes key,
                                      char *out)
{
    if (!request->host_name.data)
        return key;
    for (size_t at = 0; at < key.size; at++) {
        if (key.data[at] == ':' && at + 1 < key.size && key.data[at + 1] != ':')
            continue; /* "ip:2001:db8::1" */
        size_t end = at;
        while (end < key.size && is_address_char(key.data[end]))
            end++;
        struct weir_address address;
        if (end > at && weir_address_parse(&address, key.data + at, end - at) == 0 &&
            stands_for_name(request, &address)) {
            size_t tail = key.size - end, name = request->host_name.size;
            memcpy(out, key.data, at);
            memcpy(out + at, request->host_name.data, name);
            memcpy(out + at + name, key.data + end, tail);
            return (struct weir_bytes){out, at + name + tail};
        }
        if (end > at)
            at = end;
    }
    return key;
}
