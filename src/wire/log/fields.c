/* SPDX-License-Identifier: Apache-2.0 */
/* see fields.h */
#include "wire/log/fields.h"

#include <string.h>

#include "core/text/hex.h"

bool log_byte_take(struct log_cursor *cursor, char wanted)
{
    if (cursor->at == cursor->end || *cursor->at != wanted)
        return false;
    cursor->at++;
    return true;
}

/* The first byte of this value; NULL: there is none. */
static char *find(const struct log_cursor *cursor, char wanted)
{
    return memchr(cursor->at, wanted, (size_t)(cursor->end - cursor->at));
}

bool log_word_take(struct log_cursor *cursor, struct weir_bytes *word)
{
    char *space = find(cursor, ' ');
    if (!space || space == cursor->at)
        return false;
    *word = (struct weir_bytes){cursor->at, (size_t)(space - cursor->at)};
    cursor->at = space + 1;
    return true;
}

bool log_list_take(struct log_cursor *cursor, struct weir_bytes *list)
{
    struct weir_bytes word;
    if (!log_word_take(cursor, list))
        return false;
    while (list->data[list->size - 1] == ',') {
        if (!log_word_take(cursor, &word))
            return false;
        list->size = (size_t)(word.data + word.size - list->data);
    }
    return true;
}

/* Reads what follows a backslash at `at`. Returns the bytes taken, 0 when it is no escape. */
static size_t escape_read(const char *at, const char *end, char *out)
{
    static const char letters[] = "\"\\bfnrtv", values[] = "\"\\\b\f\n\r\t\v";
    if (at == end)
        return 0;
    const char *letter = memchr(letters, *at, sizeof letters - 1);
    if (letter) {
        *out = values[letter - letters];
        return 1;
    }
    if (*at == 'x' && end - at >= 3 && weir_hex_value(at[1]) >= 0 && weir_hex_value(at[2]) >= 0) {
        *out = (char)(weir_hex_value(at[1]) << 4 | weir_hex_value(at[2]));
        return 3;
    }
    return 0;
}

/* The rest of a quoted field, from its first backslash on. Returns its end, NULL: there is no
 * quote. */
static char *unescape(struct log_cursor *cursor, char *at)
{
    char *out = at;
    while (at < cursor->end && *at != '"') {
        char c = *at++;
        if (c == '\\')
            at += escape_read(at, cursor->end, &c);
        *out++ = c;
    }
    if (at == cursor->end)
        return NULL;
    cursor->at = at + 1;
    return out;
}

bool log_quoted_take(struct log_cursor *cursor, struct weir_bytes *field)
{
    if (!log_byte_take(cursor, '"'))
        return false;
    char *start = cursor->at, *end = find(cursor, '"');
    if (!end)
        return false;
    char *backslash = memchr(start, '\\', (size_t)(end - start));
    cursor->at = end + 1;
    if (backslash)
        end = unescape(cursor, backslash);
    if (!end)
        return false;
    *field = (struct weir_bytes){start, (size_t)(end - start)};
    return true;
}

bool log_number_take(struct log_cursor *cursor, uint64_t *number)
{
    const char *start = cursor->at;
    uint64_t value = 0;
    if (!log_byte_take(cursor, '-')) {
        for (; cursor->at < cursor->end && *cursor->at >= '0' && *cursor->at <= '9'; cursor->at++)
            if (__builtin_mul_overflow(value, 10, &value) ||
                __builtin_add_overflow(value, (uint64_t)(*cursor->at - '0'), &value))
                return false;
    }
    *number = value;
    return cursor->at > start && (cursor->at == cursor->end || *cursor->at == ' ');
}

/* http://host/path, https://host/path: splits it. */
static void split_absolute(struct weir_log_record *record)
{
    static const char *const schemes[] = {"http://", "https://"};
    struct weir_bytes target = record->target;
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        size_t size = strlen(schemes[i]);
        if (target.size <= size || memcmp(target.data, schemes[i], size) != 0)
            continue;
        const char *host = target.data + size, *end = target.data + target.size;
        const char *path = host;
        while (path < end && *path != '/' && *path != '?')
            path++;
        record->host = (struct weir_bytes){host, (size_t)(path - host)};
        record->target = path < end && *path == '/'
                             ? (struct weir_bytes){path, (size_t)(end - path)}
                             : (struct weir_bytes){"/", 1};
        return;
    }
}

/* Whether the text ends in " HTTP/x", and where that begins. */
static const char *protocol_find(const char *target, const char *end)
{
    const char *at = end;
    while (at > target && at[-1] != ' ')
        at--;
    return at > target && end - at > 4 && memcmp(at, "HTTP/", 5) == 0 ? at - 1 : end;
}

void log_request_split(struct weir_log_record *record, struct weir_bytes request)
{
    const char *space = request.size > 0 ? memchr(request.data, ' ', request.size) : NULL;
    record->method = record->target = (struct weir_bytes){NULL, 0};
    if (!space || space == request.data)
        return;
    const char *target = space + 1;
    const char *end = protocol_find(target, request.data + request.size);
    if (end <= target)
        return;
    record->method = (struct weir_bytes){request.data, (size_t)(space - request.data)};
    record->target = (struct weir_bytes){target, (size_t)(end - target)};
    if (*target != '/')
        split_absolute(record);
}

struct weir_bytes log_absent_if_dash(struct weir_bytes field)
{
    return field.size == 1 && field.data[0] == '-' ? (struct weir_bytes){NULL, 0} : field;
}
