/* SPDX-License-Identifier: Apache-2.0 */
/* see envoy_json.h */
#include "wire/json/envoy_json.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/bytes.h"
#include "wire/json/scan.h"
#include "wire/json/string.h"

/* --- Reading ---------------------------------------------------------------------------------- */

#define ALIGNED(size) (((size) + 15) & ~(size_t)15)

/* Every descriptor and every entry begins with a brace; so does the whole. */
size_t weir_envoy_json_room(const char *text, size_t size)
{
    size_t braces = 0;
    for (size_t i = 0; i < size; i++)
        braces += text[i] == '{';
    return ALIGNED(braces * sizeof(struct weir_envoy_descriptor)) +
           ALIGNED(braces * sizeof(struct weir_envoy_entry));
}

struct reader {
    struct json_scan scan;
    struct weir_envoy_descriptor *descriptors;
    struct weir_envoy_entry *entries; /* the next free one */
};

/* A member of an object: its two names, and what reads its value. */
struct member {
    const char *camel, *snake;
    int (*read)(struct reader *reader, void *out);
};

/* Skips "null". */
static bool read_null(struct json_scan *scan)
{
    if (json_scan_peek(scan) != 'n' || scan->end - scan->at < 4 || memcmp(scan->at, "null", 4) != 0)
        return false;
    scan->at += 4;
    return true;
}

static int read_object(struct reader *reader, const struct member *members, uint32_t count,
                       void *out)
{
    struct json_scan *scan = &reader->scan;
    struct weir_bytes name;
    uint32_t seen = 0, read = 0;
    int err = json_scan_object(scan);
    while (err == 0) {
        scan->field = NULL;
        int more = json_scan_member(scan, read++, &name);
        if (more <= 0)
            return more;
        uint32_t at = 0;
        while (at < count && !weir_bytes_are(name, members[at].camel) &&
               !weir_bytes_are(name, members[at].snake))
            at++;
        if (at == count)
            return json_scan_fail(scan, WEIR_ERR_SYNTAX, name.data, "unknown field");
        scan->field = members[at].camel;
        if ((seen >> at & 1) != 0)
            return json_scan_fail(scan, WEIR_ERR_SYNTAX, name.data, "given twice");
        seen |= 1u << at;
        err = read_null(scan) ? 0 : members[at].read(reader, out);
    }
    return err;
}

/* "[", items, "]". Each item is an object of `members`; `next` says where it goes. */
static int read_array(struct reader *reader, const struct member *members, uint32_t count,
                      void *(*next)(struct reader *))
{
    struct json_scan *scan = &reader->scan;
    const char *field = scan->field;
    if (json_scan_peek(scan) != '[')
        return json_scan_fail(scan, WEIR_ERR_SYNTAX, scan->at, "not an array");
    scan->at++;
    if (json_scan_peek(scan) == ']') {
        scan->at++;
        return 0;
    }
    for (;;) {
        if (json_scan_peek(scan) != '{') {
            scan->field = field;
            return json_scan_fail(scan, WEIR_ERR_SYNTAX, scan->at, "not an object");
        }
        int err = read_object(reader, members, count, next(reader));
        if (err < 0)
            return err;
        char byte = json_scan_peek(scan);
        scan->at += byte == ',' || byte == ']';
        if (byte == ']')
            return 0;
        if (byte != ',') {
            scan->field = field;
            return json_scan_fail(scan, WEIR_ERR_SYNTAX, scan->at,
                                  "missing comma or closing bracket");
        }
    }
}

/* --- Values ----------------------------------------------------------------------------------- */

static int read_number(struct reader *reader, uint64_t most, uint64_t *number)
{
    struct json_scan *scan = &reader->scan;
    (void)json_scan_peek(scan);
    const char *at = scan->at;
    int err = json_scan_integer(scan, number);
    return err == 0 && *number > most ? json_scan_fail(scan, WEIR_ERR_RANGE, at, "too large") : err;
}

static int read_uint32(struct reader *reader, uint32_t *number)
{
    uint64_t value = 0;
    int err = read_number(reader, UINT32_MAX, &value);
    *number = (uint32_t)value;
    return err;
}

static int read_key(struct reader *reader, void *out)
{
    return json_scan_string(&reader->scan, &((struct weir_envoy_entry *)out)->key);
}

static int read_value(struct reader *reader, void *out)
{
    return json_scan_string(&reader->scan, &((struct weir_envoy_entry *)out)->value);
}

static void *next_entry(struct reader *reader)
{
    reader->entries->key = reader->entries->value = (struct weir_bytes){"", 0};
    return reader->entries++;
}

static int read_entries(struct reader *reader, void *out)
{
    static const struct member members[] = {{"key", "key", read_key},
                                            {"value", "value", read_value}};
    struct weir_envoy_descriptor *of = out;
    struct weir_envoy_entry *first = reader->entries;
    int err = read_array(reader, members, 2, next_entry);
    of->entries = first;
    of->entry_count = (uint32_t)(reader->entries - first);
    return err;
}

static int read_requests(struct reader *reader, void *out)
{
    return read_uint32(reader, &((struct weir_envoy_descriptor *)out)->requests_per_unit);
}

/* Of envoy.type.v3.RateLimitUnit, which has no week. */
static int read_unit(struct reader *reader, void *out)
{
    static const char *const names[] = {"UNKNOWN", "SECOND", "MINUTE", "HOUR",
                                        "DAY",     "MONTH",  "YEAR"};
    struct weir_envoy_descriptor *of = out;
    struct weir_bytes name;
    if (json_scan_peek(&reader->scan) != '"')
        return read_uint32(reader, &of->unit);
    const char *at = reader->scan.at;
    int err = json_scan_string(&reader->scan, &name);
    for (uint32_t i = 0; err == 0 && i < sizeof(names) / sizeof(names[0]); i++) {
        if (weir_bytes_are(name, names[i])) {
            of->unit = i;
            return 0;
        }
    }
    return err < 0 ? err
                   : json_scan_fail(&reader->scan, WEIR_ERR_SYNTAX, at, "unknown unit of time");
}

static int read_limit(struct reader *reader, void *out)
{
    static const struct member members[] = {{"requestsPerUnit", "requests_per_unit", read_requests},
                                            {"unit", "unit", read_unit}};
    ((struct weir_envoy_descriptor *)out)->has_limit = true;
    return read_object(reader, members, 2, out);
}

static int read_descriptor_hits(struct reader *reader, void *out)
{
    struct weir_envoy_descriptor *of = out;
    of->has_hits_addend = true;
    return read_number(reader, UINT64_MAX, &of->hits_addend);
}

static int read_negative(struct reader *reader, void *out)
{
    return json_scan_bool(&reader->scan, &((struct weir_envoy_descriptor *)out)->is_negative_hits);
}

static void *next_descriptor(struct reader *reader)
{
    *reader->descriptors = (struct weir_envoy_descriptor){.entries = reader->entries};
    return reader->descriptors++;
}

static int read_descriptors(struct reader *reader, void *out)
{
    static const struct member members[] = {
        {"entries", "entries", read_entries},
        {"limit", "limit", read_limit},
        {"hitsAddend", "hits_addend", read_descriptor_hits},
        {"isNegativeHits", "is_negative_hits", read_negative},
    };
    struct weir_envoy_request *request = out;
    struct weir_envoy_descriptor *first = reader->descriptors;
    int err = read_array(reader, members, sizeof(members) / sizeof(members[0]), next_descriptor);
    request->descriptors = first;
    request->descriptor_count = (uint32_t)(reader->descriptors - first);
    return err;
}

static int read_domain(struct reader *reader, void *out)
{
    return json_scan_string(&reader->scan, &((struct weir_envoy_request *)out)->domain);
}

static int read_hits(struct reader *reader, void *out)
{
    return read_uint32(reader, &((struct weir_envoy_request *)out)->hits_addend);
}

int weir_envoy_json_read(struct weir_envoy_request *request, char *text, size_t size, void *room,
                         struct weir_reason *reason)
{
    static const struct member members[] = {
        {"domain", "domain", read_domain},
        {"descriptors", "descriptors", read_descriptors},
        {"hitsAddend", "hits_addend", read_hits},
    };
    size_t braces = 0;
    for (size_t i = 0; i < size; i++)
        braces += text[i] == '{';
    size_t before = ALIGNED(braces * sizeof(struct weir_envoy_descriptor));
    struct reader reader = {
        .scan = {.text = text, .at = text, .end = text + size, .index = -1, .reason = reason},
        .descriptors = room,
        .entries = (struct weir_envoy_entry *)(void *)((char *)room + before),
    };
    *request = (struct weir_envoy_request){.domain = {"", 0}};
    int err = read_object(&reader, members, sizeof(members) / sizeof(members[0]), request);
    reader.scan.field = NULL;
    return err < 0 ? err : json_scan_end(&reader.scan);
}

/* --- Writing ---------------------------------------------------------------------------------- */

/* A text that counts what has no room. */
struct sink {
    char *out;
    size_t used, size;
};

static void put(struct sink *sink, const char *data, size_t size)
{
    if (sink->used < sink->size) {
        size_t room = sink->size - sink->used;
        memcpy(sink->out + sink->used, data, size < room ? size : room);
    }
    sink->used += size;
}

static void put_text(struct sink *sink, const char *text)
{
    put(sink, text, strlen(text));
}

static void put_format(struct sink *sink, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void put_format(struct sink *sink, const char *format, ...)
{
    char text[64];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    put_text(sink, text);
}

/* Piece by piece, so that no string needs a buffer of its size; never within a character, since a
 * piece that is no UTF-8 by itself would be replaced. */
static void put_string(struct sink *sink, struct weir_bytes text)
{
    enum { PIECE = 128 };
    char escaped[WEIR_JSON_STRING_MAX(PIECE)];
    size_t at = 0;
    put(sink, "\"", 1);
    while (at < text.size) {
        size_t size = text.size - at < PIECE ? text.size - at : PIECE;
        while (at + size < text.size && size > PIECE - 4 && (text.data[at + size] & 0xC0) == 0x80)
            size--;
        size_t length = weir_json_string_write(text.data + at, size, escaped);
        put(sink, escaped + 1, length - 2);
        at += size;
    }
    put(sink, "\"", 1);
}

/* The shortest decimal that is the same number; what JSON has no number for is a string. */
static void put_number(struct sink *sink, double number)
{
    char text[32];
    if (!isfinite(number)) {
        put_text(sink, isnan(number) ? "\"NaN\"" : number > 0 ? "\"Infinity\"" : "\"-Infinity\"");
        return;
    }
    int precision = 1;
    do {
        snprintf(text, sizeof text, "%.*g", precision, number);
    } while (strtod(text, NULL) != number && ++precision <= 17);
    put_text(sink, text);
}

/* What is open: no deeper than WEIR_ENVOY_DEPTH_MAX. */
struct level {
    const struct weir_envoy_value *value;
    uint32_t next;
};

static void put_scalar(struct sink *sink, const struct weir_envoy_value *value)
{
    switch (value->kind) {
    case WEIR_ENVOY_BOOL:
        put_text(sink, value->boolean ? "true" : "false");
        break;
    case WEIR_ENVOY_NUMBER:
        put_number(sink, value->number);
        break;
    case WEIR_ENVOY_STRING:
        put_string(sink, value->text);
        break;
    default:
        put_text(sink, "null");
    }
}

static void put_value(struct sink *sink, const struct weir_envoy_value *root)
{
    struct level levels[WEIR_ENVOY_DEPTH_MAX + 1];
    uint32_t depth = 0;
    const struct weir_envoy_value *value = root;
    for (;;) {
        bool is_struct = value->kind == WEIR_ENVOY_STRUCT;
        if (is_struct || value->kind == WEIR_ENVOY_LIST) {
            put_text(sink, is_struct ? "{" : "[");
            levels[depth++] = (struct level){value, 0};
        } else {
            put_scalar(sink, value);
        }
        while (depth > 0 && levels[depth - 1].next == levels[depth - 1].value->count)
            put_text(sink, levels[--depth].value->kind == WEIR_ENVOY_STRUCT ? "}" : "]");
        if (depth == 0)
            return;
        struct level *level = &levels[depth - 1];
        put_text(sink, level->next > 0 ? "," : "");
        if (level->value->kind == WEIR_ENVOY_STRUCT) {
            put_string(sink, level->value->names[level->next]);
            put_text(sink, ":");
        }
        value = &level->value->items[level->next++];
    }
}

static void put_code(struct sink *sink, uint8_t code)
{
    put_text(sink, code == WEIR_ENVOY_OVER_LIMIT ? "\"OVER_LIMIT\"" : "\"OK\"");
}

static void put_limit(struct sink *sink, const struct weir_envoy_status *status)
{
    static const char *const units[WEIR_ENVOY_UNITS] = {
        [WEIR_ENVOY_UNKNOWN] = "UNKNOWN", [WEIR_ENVOY_SECOND] = "SECOND",
        [WEIR_ENVOY_MINUTE] = "MINUTE",   [WEIR_ENVOY_HOUR] = "HOUR",
        [WEIR_ENVOY_DAY] = "DAY",         [WEIR_ENVOY_MONTH] = "MONTH",
        [WEIR_ENVOY_YEAR] = "YEAR",       [WEIR_ENVOY_WEEK] = "WEEK",
    };
    put_text(sink, ",\"currentLimit\":{");
    if (status->name.size > 0) {
        put_text(sink, "\"name\":");
        put_string(sink, status->name);
        put_text(sink, ",");
    }
    if (status->requests_per_unit > 0)
        put_format(sink, "\"requestsPerUnit\":%u,", status->requests_per_unit);
    put_format(sink, "\"unit\":\"%s\"}", units[status->unit]);
}

static void put_status(struct sink *sink, const struct weir_envoy_status *status)
{
    put_text(sink, "{\"code\":");
    put_code(sink, status->code);
    if (status->has_limit)
        put_limit(sink, status);
    if (status->limit_remaining > 0)
        put_format(sink, ",\"limitRemaining\":%u", status->limit_remaining);
    if (status->has_limit) {
        put_format(sink, ",\"durationUntilReset\":\"%llus\"",
                   (unsigned long long)status->duration_until_reset_s);
    }
    put_text(sink, "}");
}

static void put_header(struct sink *sink, const struct weir_envoy_header *header)
{
    put_text(sink, "{\"key\":");
    put_string(sink, header->key);
    put_text(sink, ",\"value\":");
    put_string(sink, header->value);
    put_text(sink, "}");
}

size_t weir_envoy_json_write(const struct weir_envoy_response *response, char *out, size_t size)
{
    struct sink sink = {out, 0, size};
    put_text(&sink, "{\"overallCode\":");
    put_code(&sink, response->overall_code);
    for (uint32_t i = 0; i < response->status_count; i++) {
        put_text(&sink, i == 0 ? ",\"statuses\":[" : ",");
        put_status(&sink, &response->statuses[i]);
    }
    put_text(&sink, response->status_count > 0 ? "]" : "");
    for (uint32_t i = 0; i < response->header_count; i++) {
        put_text(&sink, i == 0 ? ",\"responseHeadersToAdd\":[" : ",");
        put_header(&sink, &response->headers[i]);
    }
    put_text(&sink, response->header_count > 0 ? "]" : "");
    if (response->request_header.key.data) {
        put_text(&sink, ",\"requestHeadersToAdd\":[");
        put_header(&sink, &response->request_header);
        put_text(&sink, "]");
    }
    if (response->dynamic_metadata) {
        put_text(&sink, ",\"dynamicMetadata\":");
        put_value(&sink, response->dynamic_metadata);
    }
    put_text(&sink, "}");
    return sink.used;
}
