/* SPDX-License-Identifier: Apache-2.0 */
/* see fields.h */
#include "wire/log/fields.h"

#include <string.h>

#include "core/text/hex.h"

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

/* Numbers of so many digits fit into 64 bits. */
#define SAFE_DIGITS 19

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
    char *start = cursor->at, *end = log_find_either(start, cursor->end, '"', '\\');
    if (end == cursor->end)
        return false;
    if (*end == '"')
        cursor->at = end + 1;
    else
        end = unescape(cursor, end);
    if (!end)
        return false;
    *field = (struct weir_bytes){start, (size_t)(end - start)};
    return true;
}

bool log_number_take(struct log_cursor *cursor, uint64_t *number)
{
    const char *start = cursor->at;
    uint64_t value = 0;
    char *at = start < cursor->end && *start == '-' ? cursor->at + 1 : cursor->at;
    if (at == start)
        for (unsigned digit; at < cursor->end && (digit = (unsigned)*at - '0') <= 9; at++) {
            if (at - start >= SAFE_DIGITS && value > (UINT64_MAX - digit) / 10)
                return false;
            value = value * 10 + digit;
        }
    cursor->at = at;
    *number = value;
    return at > start && (at == cursor->end || *at == ' ');
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
    if (end - target > 9 && memcmp(end - 9, " HTTP/1.1", 9) == 0) /* of most */
        return end - 9;
    while (at > target && at[-1] != ' ')
        at--;
    return at > target && end - at > 4 && memcmp(at, "HTTP/", 5) == 0 ? at - 1 : end;
}

void log_request_split(struct weir_log_record *record, struct weir_bytes request)
{
    struct log_cursor cursor = {(char *)request.data, (char *)request.data + request.size};
    struct weir_bytes method;
    record->method = record->target = (struct weir_bytes){NULL, 0};
    if (!log_word_take(&cursor, &method))
        return;
    const char *target = cursor.at;
    const char *end = protocol_find(target, cursor.end);
    if (end <= target)
        return;
    record->method = method;
    record->target = (struct weir_bytes){target, (size_t)(end - target)};
    if (*target != '/')
        split_absolute(record);
}
