/* SPDX-License-Identifier: Apache-2.0 */
/* See envoy_json.h: writing. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/json/envoy_json.h"
#include "wire/json/string.h"

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
        put_text(&sink, i == 0 ? ",\"responseHeadersToAdd\":[{\"key\":" : ",{\"key\":");
        put_string(&sink, response->headers[i].key);
        put_text(&sink, ",\"value\":");
        put_string(&sink, response->headers[i].value);
        put_text(&sink, "}");
    }
    put_text(&sink, response->header_count > 0 ? "]" : "");
    if (response->dynamic_metadata != NULL) {
        put_text(&sink, ",\"dynamicMetadata\":");
        put_value(&sink, response->dynamic_metadata);
    }
    put_text(&sink, "}");
    return sink.used;
}
