/* SPDX-License-Identifier: Apache-2.0 */
/* see query.h */
#include "rules/match/query.h"

#include <string.h>

#include "core/text/hex.h"

/* Takes one decoded byte off a text that is not empty. */
static char take_byte(struct weir_bytes *text)
{
    char byte = text->data[0];
    size_t taken = 1;
    if (byte == '+') {
        byte = ' ';
    } else if (byte == '%' && text->size >= 3) {
        int high = weir_hex_value(text->data[1]), low = weir_hex_value(text->data[2]);
        if (high >= 0 && low >= 0) {
            byte = (char)(high * 16 + low);
            taken = 3;
        }
    }
    text->data += taken;
    text->size -= taken;
    return byte;
}

/* Whether an encoded name is `name`. */
static bool is_name(struct weir_bytes encoded, struct weir_bytes name)
{
    size_t at = 0;
    while (encoded.size > 0 && at < name.size)
        if (take_byte(&encoded) != name.data[at++])
            return false;
    return encoded.size == 0 && at == name.size;
}

/* What is left to be read of a query: it begins with "?" or "&", or is empty. */
static struct weir_bytes query_of(struct weir_bytes target)
{
    const char *end = target.size > 0 ? memchr(target.data, '#', target.size) : NULL;
    if (end)
        target.size = (size_t)(end - target.data);
    const char *at = target.size > 0 ? memchr(target.data, '?', target.size) : NULL;
    if (!at)
        return (struct weir_bytes){target.data, 0};
    return (struct weir_bytes){at, (size_t)(target.data + target.size - at)};
}

/* Takes the next parameter of this name. */
static bool next_value(struct weir_bytes *query, struct weir_bytes name, struct weir_bytes *value)
{
    const char *at = query->data, *end = at + query->size;
    while (at < end) {
        const char *begin = at + 1;
        size_t left = (size_t)(end - begin);
        const char *next = left > 0 ? memchr(begin, '&', left) : NULL;
        at = next ? next : end;
        size_t size = (size_t)(at - begin);
        const char *equals = size > 0 ? memchr(begin, '=', size) : NULL;
        struct weir_bytes found = {begin, equals ? (size_t)(equals - begin) : size};
        if (!is_name(found, name))
            continue;
        begin += found.size + (equals != NULL);
        *value = (struct weir_bytes){begin, (size_t)(at - begin)};
        *query = (struct weir_bytes){at, (size_t)(end - at)};
        return true;
    }
    return false;
}

bool weir_query_find(struct weir_bytes target, struct weir_bytes name, struct weir_bytes *value)
{
    struct weir_bytes query = query_of(target);
    return query.size > 0 && next_value(&query, name, value);
}

bool weir_query_find_last(struct weir_bytes target, struct weir_bytes name,
                          struct weir_bytes *value)
{
    struct weir_bytes query = query_of(target);
    bool found = false;
    while (query.size > 0 && next_value(&query, name, value))
        found = true;
    return found;
}

bool weir_query_differs(struct weir_bytes target, struct weir_bytes name)
{
    struct weir_bytes query = query_of(target), first, value;
    if (query.size == 0 || !next_value(&query, name, &first))
        return false;
    while (query.size > 0 && next_value(&query, name, &value))
        if (value.size != first.size || memcmp(value.data, first.data, first.size) != 0)
            return true;
    return false;
}

long weir_query_decode(struct weir_bytes encoded, struct weir_bytes *decoded, char *out,
                       size_t room)
{
    bool plain = true;
    size_t size = 0;
    for (size_t i = 0; i < encoded.size && plain; i++)
        plain = encoded.data[i] != '%' && encoded.data[i] != '+';
    if (plain) {
        *decoded = encoded;
        return encoded.size <= WEIR_QUERY_VALUE_MAX ? 0 : -1;
    }
    room = room < WEIR_QUERY_VALUE_MAX ? room : WEIR_QUERY_VALUE_MAX;
    while (encoded.size > 0) {
        if (size == room)
            return -1;
        out[size++] = take_byte(&encoded);
    }
    *decoded = (struct weir_bytes){out, size};
    return (long)size;
}
