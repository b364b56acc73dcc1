/* SPDX-License-Identifier: Apache-2.0 */
/* see request.h */
#include "cli/replay/request.h"

#include <stdio.h>
#include <string.h>

#include "core/text/siphash.h"
#include "engine/http/check_request.h"
#include "wire/log/access_log.h"

/* The core's range of times: below 2^62 ns. */
#define TIME_MAX_NS (UINT64_C(1) << 62)
/* Host names end at 253 characters (RFC 1035 2.3.4). */
#define HOST_NAME_MAX_BYTES 253

static int refuse(struct weir_reason *reason, int error, const char *field, const char *what)
{
    snprintf(reason->text, sizeof reason->text, "%s: %s", field, what);
    return error;
}

int replay_request_fill(struct replay_request *out, const struct weir_rules *rules,
                        const struct weir_check_json *check, struct weir_reason *reason)
{
    return weir_check_request_fill(&out->request, rules, check, WEIR_TRUST_RECORDED,
                                   (struct weir_room){out->joined, sizeof out->joined}, reason);
}

static int parse_json(struct replay_request *out, const struct weir_rules *rules,
                      const struct replay_line *line, struct weir_reason *reason)
{
    struct weir_check_cursor cursor;
    weir_check_cursor_init(&cursor, line->text, line->size);
    int got = weir_check_cursor_next(&cursor, &out->check, reason);
    if (got < 0)
        return got;
    if (got == 0 || cursor.array)
        return refuse(reason, WEIR_ERR_SYNTAX, "line", "not a JSON object");
    if (!out->check.has_t)
        return refuse(reason, WEIR_ERR_SYNTAX, "t", "missing");
    out->t_ns = out->check.t_ns;
    out->dry_run = out->check.dry_run;
    out->status = out->check.status;
    if (__builtin_mul_overflow(out->check.latency_ms, UINT64_C(1000000), &out->latency_ns))
        out->latency_ns = UINT64_MAX;
    int error = replay_request_fill(out, rules, &out->check, reason);
    if (error < 0)
        return error;
    /* Values are in the line itself: what follows the object may be read now. */
    struct weir_reason tail = {{0}};
    if (weir_check_cursor_next(&cursor, &out->check, &tail) != 0) {
        *reason = tail;
        return WEIR_ERR_SYNTAX;
    }
    return 0;
}

/* The address that stands for a name: fc, then 120 bits of its hash. */
static void address_of_name(struct weir_address *address, struct weir_bytes name)
{
    static const uint64_t secret[2] = {0, 0}; /* only has to be the same in every run */
    uint64_t hash[2];
    weir_siphash128(secret, name.data, name.size, hash);
    address->family = 6;
    memcpy(address->bytes, hash, sizeof hash);
    address->bytes[0] = 0xfc;
}

static void put(struct weir_request *request, struct weir_attribute_source source,
                struct weir_bytes value)
{
    weir_request_put(request, source, value, WEIR_TRUST_RECORDED);
}

static int parse_access(struct replay_request *out, const struct weir_rules *rules,
                        const struct replay_line *line, struct weir_reason *reason)
{
    struct weir_access_line access;
    if (weir_access_line_parse(&access, line->text, line->size) < 0)
        return refuse(reason, WEIR_ERR_SYNTAX, "line", "not of the common or combined log format");
    struct weir_request *request = &out->request;
    struct weir_attribute_source user = weir_rules_source(rules, "user", strlen("user"));
    weir_request_begin(request, rules, access.combined ? WEIR_FIELDS_LOG : WEIR_FIELDS_NONE,
                       (struct weir_room){NULL, 0});
    out->t_ns = access.t_ns;
    if (line->of > 0) /* less than a second, of 10^9 ns */
        out->t_ns += line->place * UINT64_C(1000000000) / line->of;
    out->dry_run = false;
    out->status = out->latency_ns = 0;
    put(request, weir_source_fixed(WEIR_ATTR_METHOD), access.method);
    put(request, weir_source_fixed(WEIR_ATTR_PATH), access.target);
    put(request, user, access.user);
    if (access.combined) {
        put(request, weir_rules_field(rules, "user-agent", strlen("user-agent")), access.agent);
        put(request, weir_rules_field(rules, "referer", strlen("referer")), access.referer);
    }
    if (weir_address_parse(&request->client, access.host.data, access.host.size) == 0)
        return 0;
    if (access.host.size > HOST_NAME_MAX_BYTES ||
        weir_address_ends_in_number(access.host.data, access.host.size) ||
        memchr(access.host.data, ':', access.host.size))
        return refuse(reason, WEIR_ERR_SYNTAX, "host", "neither an address nor a name");
    address_of_name(&request->client, access.host);
    out->host_name = access.host;
    return 0;
}

int replay_request_parse(struct replay_request *out, const struct weir_rules *rules,
                         const struct replay_line *line, struct weir_reason *reason)
{
    out->host_name = (struct weir_bytes){NULL, 0};
    if (line->too_long)
        return refuse(reason, WEIR_ERR_TOO_LARGE, "line", "longer than 1 MiB");
    int error = line->format == REPLAY_JSONL ? parse_json(out, rules, line, reason)
                                             : parse_access(out, rules, line, reason);
    if (error == 0 && out->t_ns >= TIME_MAX_NS)
        return refuse(reason, WEIR_ERR_RANGE, "t", "not before the year 2116");
    return error;
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
