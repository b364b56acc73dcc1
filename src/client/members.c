/* SPDX-License-Identifier: Apache-2.0 */
/* see members.h */
#include "client/members.h"

#include <string.h>
#include <strings.h>

static void skip_spaces(struct weir_bytes *rest)
{
    while (rest->size > 0 && (*rest->data == ' ' || *rest->data == '\t')) {
        rest->data++;
        rest->size--;
    }
}

static bool take_char(struct weir_bytes *rest, char wanted)
{
    skip_spaces(rest);
    if (rest->size == 0 || *rest->data != wanted)
        return false;
    rest->data++;
    rest->size--;
    return true;
}

/* A string, or anything up to a separator. False: an open string, which ends the list. */
static bool take_item(struct weir_bytes *rest, struct weir_bytes *item)
{
    size_t size = 0;

    if (take_char(rest, '"')) {
        while (size < rest->size && rest->data[size] != '"')
            size += rest->data[size] == '\\' ? 2 : 1;
        if (size >= rest->size) {
            rest->size = 0;
            return false;
        }
        *item = (struct weir_bytes){rest->data, size};
        rest->data += size + 1;
        rest->size -= size + 1;
        return true;
    }
    while (size < rest->size && !memchr(",;=\" \t", rest->data[size], 6))
        size++;
    *item = (struct weir_bytes){rest->data, size};
    rest->data += size;
    rest->size -= size;
    return size > 0;
}

static void take_parameter(struct weir_bytes *rest, struct weir_member *member)
{
    struct weir_member_parameter parameter = {{"", 0}, {"", 0}};

    if (!take_item(rest, &parameter.key))
        return;
    if (take_char(rest, '=') && !take_item(rest, &parameter.value))
        return;
    if (member->count < WEIR_MEMBER_PARAMETERS)
        member->parameters[member->count++] = parameter;
}

bool weir_member_next(struct weir_bytes *rest, struct weir_member *member)
{
    while (rest->size > 0) {
        *member = (struct weir_member){.value = {"", 0}};
        bool good = take_item(rest, &member->value);
        if (good && take_char(rest, '=')) {
            member->key = member->value;
            good = take_item(rest, &member->value);
        }
        while (take_char(rest, ';'))
            take_parameter(rest, member);
        skip_spaces(rest);
        good = good && (rest->size == 0 || *rest->data == ',');
        const char *comma = rest->size > 0 ? memchr(rest->data, ',', rest->size) : NULL;
        size_t skipped = comma ? (size_t)(comma - rest->data) + 1 : rest->size;
        rest->data += skipped;
        rest->size -= skipped;
        if (good)
            return true;
    }
    return false;
}

struct weir_bytes weir_member_get(const struct weir_member *member, const char *key)
{
    size_t size = strlen(key);

    for (uint32_t i = 0; i < member->count; i++) {
        const struct weir_member_parameter *one = &member->parameters[i];
        if (one->key.size == size && !strncasecmp(one->key.data, key, size))
            return one->value;
    }
    return (struct weir_bytes){NULL, 0};
}
