/* SPDX-License-Identifier: Apache-2.0 */
/* see foreign.h */
#include "rules/foreign.h"

#include <string.h>

#include "rules/request.h"

/* The first byte of `set` from `at` on that no backslash makes a literal, or the text's size. */
static size_t find_byte(struct weir_bytes text, size_t at, const char *set)
{
    for (; at < text.size; at++)
        if (text.data[at] == '\\')
            at++;
        else if (text.data[at] != '\0' && strchr(set, text.data[at]))
            break;
    return at < text.size ? at : text.size;
}

/* "[...]" with something in it: a set of characters. An IPv6 address of a host has them, too. */
static bool opens_set(struct weir_bytes text, size_t at, uint16_t attribute)
{
    return attribute != WEIR_ATTR_HOST && find_byte(text, at + 2, "]") < text.size;
}

/* "{a,b}": alternatives. */
static bool opens_alternatives(struct weir_bytes text, size_t at)
{
    size_t end = find_byte(text, at + 1, "}");
    return end < text.size && find_byte(text, at + 1, ",") < end;
}

static const char *judge_first(struct weir_bytes text)
{
    if (text.size > 0 && text.data[0] == '~')
        return "`~` at the beginning";
    if (text.size > 0 && text.data[0] == '^')
        return "`^` at the beginning";
    if (text.size > 1 && memcmp(text.data, "(?", 2) == 0)
        return "`(?` at the beginning";
    return NULL;
}

static const char *judge(struct weir_bytes text, size_t at, uint16_t attribute)
{
    switch (text.data[at]) {
    case '.':
        return at + 1 < text.size && text.data[at + 1] == '*' ? "`.*`" : NULL;
    case '[':
        return opens_set(text, at, attribute) ? "`[…]`" : NULL;
    case '{':
        return opens_alternatives(text, at) ? "`{a,b}`" : NULL;
    default:
        return attribute == WEIR_ATTR_METHOD ? "`|`" : NULL;
    }
}

bool rules_find_foreign(struct weir_bytes text, uint16_t attribute, struct rules_foreign *found)
{
    *found = (struct rules_foreign){0, judge_first(text)};
    for (size_t at = 0; !found->what && (at = find_byte(text, at, ".[{|")) < text.size; at++)
        *found = (struct rules_foreign){at, judge(text, at, attribute)};
    return found->what;
}

bool rules_find_foreign_path(struct weir_bytes text, struct rules_foreign *found)
{
    *found = (struct rules_foreign){find_byte(text, 0, "<>"), "`<name>`"};
    if (found->at == text.size && text.size > 0 && text.data[text.size - 1] == '$')
        *found = (struct rules_foreign){text.size - 1, "`$` at the end"};
    return found->at < text.size;
}
