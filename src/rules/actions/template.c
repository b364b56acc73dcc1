/* SPDX-License-Identifier: Apache-2.0 */
/* see template.h */
#include "rules/actions/template.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static const char *const names[] = {
    [WEIR_TEMPLATE_RETRY_AFTER] = "retry_after",
    [WEIR_TEMPLATE_LIMIT] = "limit",
    [WEIR_TEMPLATE_REMAINING] = "remaining",
    [WEIR_TEMPLATE_REASON] = "reason",
};
#define NAME_COUNT (sizeof(names) / sizeof(names[0]))

/* --- Parsing ---------------------------------------------------------------------------------- */

static bool type_is(struct weir_bytes type, const char *name)
{
    return type.size == strlen(name) && strncasecmp(type.data, name, type.size) == 0;
}

static bool type_ends(struct weir_bytes type, const char *end)
{
    size_t size = strlen(end);
    return type.size > size && strncasecmp(type.data + type.size - size, end, size) == 0;
}

enum weir_template_kind weir_template_kind_of(struct weir_bytes type)
{
    size_t size = 0;
    while (size < type.size && type.data[size] != ';' && type.data[size] != ' ')
        size++;
    type.size = size;
    if (type_is(type, "application/json") || type_ends(type, "+json"))
        return WEIR_TEMPLATE_JSON;
    if (type_is(type, "text/html") || type_is(type, "text/xml") ||
        type_is(type, "application/xml") || type_ends(type, "+xml"))
        return WEIR_TEMPLATE_MARKUP;
    return WEIR_TEMPLATE_TEXT;
}

static uint8_t variable_of(const char *name, size_t size)
{
    for (size_t i = 1; i < NAME_COUNT; i++)
        if (size == strlen(names[i]) && memcmp(name, names[i], size) == 0)
            return (uint8_t)i;
    return WEIR_TEMPLATE_NONE;
}

static const char *find_pair(const char *at, const char *end, char byte)
{
    for (; end - at >= 2; at++)
        if (at[0] == byte && at[1] == byte)
            return at;
    return NULL;
}

static int fail(int err, struct weir_reason *reason, const char *text)
{
    snprintf(reason->text, sizeof reason->text, "%s", text);
    return err;
}

int weir_template_parse(struct weir_template *template, enum weir_template_kind kind,
                        struct weir_bytes text, size_t *at, struct weir_reason *reason)
{
    const char *from = text.data, *end = text.data + text.size;
    *template = (struct weir_template){.kind = (uint8_t)kind};
    *at = 0;
    if (text.size > WEIR_TEMPLATE_MAX)
        return fail(WEIR_ERR_TOO_LARGE, reason, "it is longer than 4096 bytes");
    for (;;) {
        struct weir_template_part *part = &template->parts[template->count++];
        const char *open = find_pair(from, end, '{');
        *part = (struct weir_template_part){{from, (size_t)((open ? open : end) - from)}, 0};
        if (!open)
            return 0;
        *at = (size_t)(open - text.data);
        if (template->count > WEIR_TEMPLATE_VARIABLES)
            return fail(WEIR_ERR_TOO_LARGE, reason, "it has more than 16 variables");
        const char *name = open + 2, *close = find_pair(name, end, '}');
        if (!close)
            return fail(WEIR_ERR_SYNTAX, reason, "`{{` has no `}}`");
        from = close + 2;
        while (name < close && *name == ' ')
            name++;
        while (close > name && close[-1] == ' ')
            close--;
        part->variable = variable_of(name, (size_t)(close - name));
        if (part->variable == WEIR_TEMPLATE_NONE)
            return fail(WEIR_ERR_SYNTAX, reason,
                        "unknown variable; use {{retry_after}}, {{limit}}, {{remaining}} or "
                        "{{reason}}");
    }
}

/* --- Writing ---------------------------------------------------------------------------------- */

static char *put(char *out, const char *text, size_t size)
{
    if (size > 0)
        memcpy(out, text, size);
    return out + size;
}

static char *put_number(char *out, uint64_t number)
{
    char digits[24];
    int size = snprintf(digits, sizeof digits, "%llu", (unsigned long long)number);
    return put(out, digits, (size_t)size);
}

/* A byte of a JSON string: at most 6. */
static char *put_json(char *out, unsigned char byte)
{
    static const char hex[] = "0123456789abcdef";
    if (byte == '"' || byte == '\\') {
        *out++ = '\\';
    } else if (byte < 0x20) {
        out = put(out, "\\u00", 4);
        *out++ = hex[byte >> 4];
        *out++ = hex[byte & 15];
        return out;
    }
    *out++ = (char)byte;
    return out;
}

/* A byte of HTML or XML: at most 6. */
static char *put_markup(char *out, unsigned char byte)
{
    switch (byte) {
    case '&':
        return put(out, "&amp;", 5);
    case '<':
        return put(out, "&lt;", 4);
    case '>':
        return put(out, "&gt;", 4);
    case '"':
        return put(out, "&quot;", 6);
    case '\'':
        return put(out, "&#39;", 5);
    default:
        *out++ = byte < 0x20 || byte == 0x7f ? ' ' : (char)byte;
        return out;
    }
}

static char *put_reason(char *out, uint8_t kind, struct weir_bytes reason)
{
    size_t size = reason.size < WEIR_TEMPLATE_REASON_MAX ? reason.size : WEIR_TEMPLATE_REASON_MAX;
    for (size_t i = 0; i < size; i++) {
        unsigned char byte = (unsigned char)reason.data[i];
        if (kind == WEIR_TEMPLATE_JSON)
            out = put_json(out, byte);
        else if (kind == WEIR_TEMPLATE_MARKUP)
            out = put_markup(out, byte);
        else
            *out++ = byte < 0x20 || byte == 0x7f ? ' ' : (char)byte;
    }
    return out;
}

/* A number, or the word in its place. */
static char *put_known(char *out, uint8_t kind, uint64_t number, const char *word)
{
    if (number != UINT64_MAX)
        return put_number(out, number);
    return kind == WEIR_TEMPLATE_JSON ? put(out, "null", 4) : put(out, word, strlen(word));
}

size_t weir_template_write(const struct weir_template *template,
                           const struct weir_template_values *values, char *out)
{
    const char *start = out;
    for (uint8_t i = 0; i < template->count; i++) {
        const struct weir_template_part *part = &template->parts[i];
        out = put(out, part->text.data, part->text.size);
        switch (part->variable) {
        case WEIR_TEMPLATE_RETRY_AFTER:
            out = put_known(out, template->kind, values->retry_after_s, "never");
            break;
        case WEIR_TEMPLATE_LIMIT:
            out = put_known(out, template->kind, values->limit, "unknown");
            break;
        case WEIR_TEMPLATE_REMAINING:
            out = put_known(out, template->kind, values->remaining, "unknown");
            break;
        case WEIR_TEMPLATE_REASON:
            out = put_reason(out, template->kind, values->reason);
            break;
        default:
            break;
        }
    }
    return (size_t)(out - start);
}
