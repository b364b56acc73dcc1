/* SPDX-License-Identifier: Apache-2.0 */
/* See resp.h. */
#include "wire/resp/resp.h"

#include <stdio.h>
#include <string.h>

#include "core/text/hex.h"
#include "wire/resp/line.h"

static long refuse(struct weir_resp_parser *parser, const char *what)
{
    snprintf(parser->problem, sizeof parser->problem, "Protocol error: %s", what);
    return WEIR_ERR_SYNTAX;
}

static long refuse_type(struct weir_resp_parser *parser, char got)
{
    bool printable = got >= 0x20 && got < 0x7f;
    snprintf(parser->problem, sizeof parser->problem, "Protocol error: expected '$', got '%c'",
             printable ? got : '?');
    return WEIR_ERR_SYNTAX;
}

/* The end of a request: the parser starts again. */
static long finish(struct weir_resp_parser *parser, struct weir_resp_request *request,
                   uint32_t count, size_t used)
{
    request->count = count;
    parser->used = parser->scanned = 0;
    parser->total = parser->have = 0;
    return (long)used;
}

/* --- Inline commands -------------------------------------------------------------------------- */

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* What follows a backslash in double quotes; the bytes taken. */
static size_t escape_read(const char *at, const char *end, char *out)
{
    static const char letters[] = "nrtba", values[] = "\n\r\t\b\a";
    if (end - at >= 3 && *at == 'x' && weir_hex_value(at[1]) >= 0 && weir_hex_value(at[2]) >= 0) {
        *out = (char)(weir_hex_value(at[1]) << 4 | weir_hex_value(at[2]));
        return 3;
    }
    const char *letter = memchr(letters, *at, sizeof letters - 1);
    *out = letter ? values[letter - letters] : *at;
    return 1;
}

/* Copies a quoted part to *out; *at is after the opening quote. False: no closing quote, or
 * one that no space follows. */
static bool quoted_read(char **at, const char *end, char quote, char **out)
{
    char *from = *at, *to = *out;
    while (from < end && *from != quote) {
        char c = *from++;
        if (c == '\\' && from < end) {
            if (quote == '"')
                from += escape_read(from, end, &c);
            else if (*from == '\'')
                c = *from++;
        }
        *to++ = c;
    }
    *out = to;
    *at = from + 1;
    return from < end && (from + 1 == end || is_space(from[1]));
}

/* One argument (Redis' sdssplitargs): quotes may begin anywhere in it. */
static bool argument_read(char **at, const char *end, struct weir_bytes *arg)
{
    char *out = *at;
    arg->data = out;
    while (*at < end && !is_space(**at)) {
        char c = *(*at)++;
        if (c != '"' && c != '\'')
            *out++ = c;
        else if (!quoted_read(at, end, c, &out))
            return false;
        else
            break;
    }
    arg->size = (size_t)(out - arg->data);
    return true;
}

static long inline_parse(struct weir_resp_parser *parser, char *data, size_t size,
                         struct weir_resp_request *request)
{
    size_t limit = size < WEIR_RESP_LINE_MAX ? size : WEIR_RESP_LINE_MAX;
    char *newline = memchr(data + parser->scanned, '\n', limit - parser->scanned), *at = data;
    uint32_t count = 0;

    if (!newline) {
        parser->scanned = limit;
        return limit == WEIR_RESP_LINE_MAX ? refuse(parser, "too big inline request") : 0;
    }
    for (;;) {
        while (at < newline && is_space(*at))
            at++;
        if (at == newline)
            break;
        struct weir_bytes arg;
        if (!argument_read(&at, newline, &arg))
            return refuse(parser, "unbalanced quotes in request");
        if (count < WEIR_RESP_ARGS_MAX)
            request->args[count] = arg;
        count++;
    }
    return finish(parser, request, count, (size_t)(newline + 1 - data));
}

/* --- Arrays ----------------------------------------------------------------------------------- */

/* Reads "*<count>". Returns 1, 0 for more, or an error. */
static long array_head(struct weir_resp_parser *parser, const char *data, size_t size,
                       int64_t *count)
{
    switch (resp_length_read(data, size, 0, WEIR_RESP_LINE_MAX, &parser->scanned, count,
                             &parser->used)) {
    case RESP_LINE_MORE:
        return 0;
    case RESP_LINE_LONG:
        return refuse(parser, "too big mbulk count string");
    case RESP_LINE_BAD:
        return refuse(parser, "invalid multibulk length");
    default:
        break;
    }
    if (*count < -1 || *count > WEIR_RESP_ARRAY_MAX)
        return refuse(parser, "invalid multibulk length");
    if (parser->unauthenticated && *count > WEIR_RESP_UNAUTHENTICATED_ARRAY_MAX)
        return refuse(parser, "unauthenticated multibulk length");
    return 1;
}

/* Refuses what a bulk string's length line is not, or is too large. */
static long length_refuse(struct weir_resp_parser *parser, enum resp_line line, int64_t length)
{
    if (line == RESP_LINE_LONG)
        return refuse(parser, "too big bulk count string");
    if (line == RESP_LINE_DONE && length >= -1 && length <= WEIR_RESP_REQUEST_MAX) {
        return refuse(parser, parser->unauthenticated && length > WEIR_RESP_UNAUTHENTICATED_BULK_MAX
                                  ? "unauthenticated bulk length"
                                  : "too big request");
    }
    return refuse(parser, "invalid bulk length");
}

/* An integer as an argument. Returns 1, 0 for more, or an error. */
static long integer_argument(struct weir_resp_parser *parser, const char *data, size_t size,
                             struct weir_bytes *arg)
{
    int64_t value;
    size_t next = 0;
    enum resp_line line = resp_length_read(data, size, parser->used, WEIR_RESP_LINE_MAX,
                                           &parser->scanned, &value, &next);
    if (line == RESP_LINE_MORE)
        return 0;
    if (line != RESP_LINE_DONE)
        return refuse(parser, "invalid integer");
    if (next > WEIR_RESP_REQUEST_MAX)
        return refuse(parser, "too big request");
    *arg = (struct weir_bytes){data + parser->used + 1, next - 2 - (parser->used + 1)};
    parser->used = next;
    return 1;
}

/* Reads the next argument. Returns 1, 0 for more, or an error. */
static inline long argument_parse(struct weir_resp_parser *parser, const char *data, size_t size,
                                  struct weir_bytes *arg)
{
    int64_t length;
    size_t next = 0, used = parser->used;

    if (used == size)
        return 0;
    if (data[used] != '$') {
        return data[used] == ':' ? integer_argument(parser, data, size, arg)
                                 : refuse_type(parser, data[used]);
    }
    enum resp_line line =
        resp_length_read(data, size, used, WEIR_RESP_LINE_MAX, &parser->scanned, &length, &next);
    if (line == RESP_LINE_MORE)
        return 0;
    size_t bulk_max =
        parser->unauthenticated ? WEIR_RESP_UNAUTHENTICATED_BULK_MAX : WEIR_RESP_REQUEST_MAX;
    if (line != RESP_LINE_DONE || length < -1 || length > (int64_t)bulk_max ||
        next + (size_t)(length + 2) > WEIR_RESP_REQUEST_MAX)
        return length_refuse(parser, line, length);
    if (length < 0) {
        *arg = (struct weir_bytes){0};
        parser->used = next;
        return 1;
    }
    if (size - next < (size_t)length + 2)
        return 0;
    const char *end = data + next + length;
    if (end[0] != '\r' || end[1] != '\n')
        return refuse(parser, "expected CR LF after a bulk string");
    *arg = (struct weir_bytes){data + next, (size_t)length};
    parser->used = next + (size_t)length + 2;
    return 1;
}

/* A bulk string of up to 99 bytes that is all in [at, end), as nearly all are: returns where the
 * next argument begins; NULL: it is anything else. */
static inline const char *short_argument(const char *at, const char *end, struct weir_bytes *arg)
{
    if (end - at < (ptrdiff_t)sizeof "$0\r\n\r\n" - 1 || at[0] != '$')
        return NULL;
    unsigned length = (unsigned char)(at[1] - '0'), second = (unsigned char)(at[2] - '0');
    if (length > 9)
        return NULL;
    if (second <= 9 && length > 0) {
        length = length * 10 + second;
        at++;
    }
    const char *text = at + 4;
    if (memcmp(at + 2, "\r\n", 2) != 0 || end - text < (ptrdiff_t)length + 2 ||
        memcmp(text + length, "\r\n", 2) != 0)
        return NULL;
    *arg = (struct weir_bytes){text, length};
    return text + length + 2;
}

/* Reads the short arguments that are next. */
static inline void short_arguments(struct weir_resp_parser *parser, const char *data, size_t size,
                                   struct weir_resp_request *request)
{
    const char *at = data + parser->used, *next;
    const char *end = data + (size < WEIR_RESP_REQUEST_MAX ? size : WEIR_RESP_REQUEST_MAX);
    uint32_t most = parser->total < WEIR_RESP_ARGS_MAX ? parser->total : WEIR_RESP_ARGS_MAX;
    uint32_t have = parser->have;
    for (; have < most; have++, at = next) {
        next = short_argument(at, end, &request->args[have]);
        if (!next)
            break;
    }
    parser->used = (size_t)(at - data);
    parser->have = have;
}

/* Lets the arguments point to the same places of a buffer that has moved. */
static void arguments_rebase(struct weir_resp_parser *parser, const char *data,
                             struct weir_resp_request *request)
{
    for (uint32_t i = 0; i < parser->have && i < WEIR_RESP_ARGS_MAX; i++) {
        struct weir_bytes *arg = &request->args[i];
        if (arg->data)
            arg->data = data + ((uintptr_t)arg->data - (uintptr_t)parser->base);
    }
}

long weir_resp_parse(struct weir_resp_parser *parser, char *data, size_t size,
                     struct weir_resp_request *request)
{
    struct weir_bytes dropped;

    if (parser->problem[0] != '\0')
        return WEIR_ERR_SYNTAX;
    if (parser->total == 0) {
        int64_t count = 0;
        if (size == 0 || data[0] != '*')
            return size == 0 ? 0 : inline_parse(parser, data, size, request);
        long done = array_head(parser, data, size, &count);
        if (done <= 0)
            return done;
        if (count <= 0)
            return finish(parser, request, 0, parser->used);
        parser->total = (uint32_t)count;
    } else if (parser->base != data) {
        arguments_rebase(parser, data, request);
    }
    parser->base = data;
    for (;;) {
        if (parser->scanned == 0) /* at the start of a line */
            short_arguments(parser, data, size, request);
        if (parser->have == parser->total)
            break;
        long done = argument_parse(parser, data, size,
                                   parser->have < WEIR_RESP_ARGS_MAX ? &request->args[parser->have]
                                                                     : &dropped);
        if (done <= 0)
            return done;
        parser->have++;
    }
    return finish(parser, request, parser->total, parser->used);
}

bool weir_resp_is(struct weir_bytes arg, const char *word)
{
    size_t i = 0;
    while (i < arg.size && word[i] != '\0') {
        char c = arg.data[i];
        if ((c >= 'a' && c <= 'z' ? c & ~0x20 : c) != word[i])
            return false;
        i++;
    }
    return i == arg.size && word[i] == '\0' && arg.data;
}
