/* SPDX-License-Identifier: Apache-2.0 */
/* A strict, slow reader of structured lists of strings with parameters (RFC 9651 section 4.2.1), to
 * check what weir writes against the grammar. */
#ifndef STRUCTURED_LIST_H
#define STRUCTURED_LIST_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define STRUCTURED_MEMBERS_MAX 64
#define STRUCTURED_PARAMETERS_MAX 8
#define STRUCTURED_TEXT_MAX 256

struct structured_parameter {
    char key[16];
    bool is_string;
    int64_t integer;
    char string[64];
};

struct structured_member {
    char string[STRUCTURED_TEXT_MAX];
    unsigned parameter_count;
    struct structured_parameter parameters[STRUCTURED_PARAMETERS_MAX];
};

struct structured_list {
    unsigned count;
    struct structured_member members[STRUCTURED_MEMBERS_MAX];
};

static inline bool structured_string(const char **at, const char *end, char *out, size_t room)
{
    size_t size = 0;
    if (*at == end || **at != '"')
        return false;
    for ((*at)++; *at < end && size < room - 1; (*at)++) {
        char c = **at;
        if (c == '"') {
            (*at)++;
            out[size] = '\0';
            return true;
        }
        if (c == '\\') {
            if (++*at == end || (**at != '"' && **at != '\\'))
                return false;
            c = **at;
        }
        if (c < 0x20 || c > 0x7e)
            return false;
        out[size++] = c;
    }
    return false;
}

static inline bool structured_integer(const char **at, const char *end, int64_t *out)
{
    unsigned digits = 0;
    *out = 0;
    while (*at < end && **at >= '0' && **at <= '9') {
        if (++digits > 15)
            return false;
        *out = *out * 10 + (*(*at)++ - '0');
    }
    return digits > 0;
}

static inline bool structured_key(const char **at, const char *end, char out[16])
{
    size_t size = 0;
    while (*at < end && size < 15 &&
           ((**at >= 'a' && **at <= 'z') ||
            (size > 0 && strchr("0123456789_-.*", **at) != NULL && **at != '\0')))
        out[size++] = *(*at)++;
    out[size] = '\0';
    return size > 0;
}

static inline bool structured_member(const char **at, const char *end,
                                     struct structured_member *member)
{
    member->parameter_count = 0;
    if (!structured_string(at, end, member->string, sizeof member->string))
        return false;
    while (*at < end && **at == ';') {
        (*at)++;
        if (member->parameter_count == STRUCTURED_PARAMETERS_MAX)
            return false;
        struct structured_parameter *parameter = &member->parameters[member->parameter_count++];
        if (!structured_key(at, end, parameter->key) || *at == end || *(*at)++ != '=' || *at == end)
            return false;
        parameter->is_string = **at == '"';
        if (parameter->is_string
                ? !structured_string(at, end, parameter->string, sizeof parameter->string)
                : !structured_integer(at, end, &parameter->integer))
            return false;
    }
    return true;
}

/* Reads exactly the serialised form: one ", " between members, no other white space. */
static inline bool structured_list_read(struct structured_list *list, const char *text, size_t size)
{
    const char *at = text, *end = text + size;
    list->count = 0;
    for (;;) {
        if (list->count == STRUCTURED_MEMBERS_MAX ||
            !structured_member(&at, end, &list->members[list->count]))
            return false;
        list->count++;
        if (at == end)
            return true;
        if (end - at < 3 || at[0] != ',' || at[1] != ' ')
            return false;
        at += 2;
    }
}

static inline const struct structured_parameter *
structured_parameter(const struct structured_member *member, const char *key)
{
    for (unsigned i = 0; i < member->parameter_count; i++)
        if (strcmp(member->parameters[i].key, key) == 0)
            return &member->parameters[i];
    return NULL;
}

#endif
