/* SPDX-License-Identifier: Apache-2.0 */
/* See idempotency_key.h. */
#include "wire/http/idempotency_key.h"

static long bare_parse(struct weir_bytes field, char *key)
{
    if (field.size > WEIR_IDEMPOTENCY_KEY_MAX)
        return WEIR_ERR_SYNTAX;
    for (size_t i = 0; i < field.size; i++) {
        char c = field.data[i];
        if (c <= ' ' || c > '~' || c == '"')
            return WEIR_ERR_SYNTAX;
        key[i] = c;
    }
    return (long)field.size;
}

/* What follows the string: nothing, or parameters, which the draft gives no meaning. */
static bool is_tail(const char *at, const char *end)
{
    return at == end || *at == ';';
}

static long quoted_parse(struct weir_bytes field, char *key)
{
    const char *end = field.data + field.size;
    long size = 0;
    for (const char *at = field.data + 1; at < end; at++) {
        if (*at == '"')
            return size > 0 && is_tail(at + 1, end) ? size : WEIR_ERR_SYNTAX;
        if (*at == '\\') {
            at++;
            if (at == end || (*at != '"' && *at != '\\'))
                return WEIR_ERR_SYNTAX;
        }
        if (*at < ' ' || *at > '~' || size == WEIR_IDEMPOTENCY_KEY_MAX)
            return WEIR_ERR_SYNTAX;
        key[size++] = *at;
    }
    return WEIR_ERR_SYNTAX; /* its end is missing */
}

long weir_idempotency_key_parse(struct weir_bytes field, char key[WEIR_IDEMPOTENCY_KEY_MAX])
{
    if (field.size == 0)
        return WEIR_ERR_SYNTAX;
    return field.data[0] == '"' ? quoted_parse(field, key) : bare_parse(field, key);
}
