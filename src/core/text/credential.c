/* SPDX-License-Identifier: Apache-2.0 */
/* see credential.h */
#include "core/text/credential.h"

#include "core/memory.h"

/* The registry of RFC 9110 16.4.1, and what APIs use beside it. */
static const struct {
    uint8_t size;
    char text[17];
} schemes[] = {
    {6, "Bearer"},         {5, "Basic"},     {6, "Digest"},        {4, "DPoP"},
    {4, "GNAP"},           {4, "HOBA"},      {6, "Mutual"},        {9, "Negotiate"},
    {4, "NTLM"},           {5, "OAuth"},     {12, "PrivateToken"}, {11, "SCRAM-SHA-1"},
    {13, "SCRAM-SHA-256"}, {9, "Concealed"}, {5, "vapid"},         {5, "Token"},
    {6, "ApiKey"},         {4, "Hawk"},      {9, "Signature"},     {16, "AWS4-HMAC-SHA256"},
};

static bool is_space(char c)
{
    return c == ' ' || c == '\t';
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

static bool same_scheme(struct weir_bytes a, struct weir_bytes b)
{
    size_t i = 0;
    while (a.size == b.size && i < a.size && lower(a.data[i]) == lower(b.data[i]))
        i++;
    return a.size == b.size && i == a.size;
}

static struct weir_bytes trim(struct weir_bytes value)
{
    while (value.size > 0 && is_space(value.data[value.size - 1]))
        value.size--;
    while (value.size > 0 && is_space(value.data[0])) {
        value.data++;
        value.size--;
    }
    return value;
}

/* Gives the scheme its canonical spelling. */
static void name_scheme(struct weir_credential *credential)
{
    struct weir_bytes *scheme = &credential->scheme;
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
        const struct weir_bytes known = {schemes[i].text, schemes[i].size};
        if (same_scheme(known, *scheme)) {
            credential->as_is = memcmp(known.data, scheme->data, scheme->size) == 0;
            *scheme = known;
            return;
        }
    }
    credential->lower = true;
    credential->as_is = true;
    for (size_t i = 0; i < scheme->size; i++)
        credential->as_is &= lower(scheme->data[i]) == scheme->data[i];
}

/* Of a trimmed value. By pointer: clang's BPF passes no struct to what it does not inline. */
static void read_trimmed(struct weir_credential *credential, const struct weir_bytes *value)
{
    struct weir_bytes all = *value;
    size_t end = 0;
    while (end < all.size && !is_space(all.data[end]))
        end++;
    *credential = (struct weir_credential){.scheme = {all.data, 0}, .token = all, .as_is = true};
    if (end == all.size)
        return;
    struct weir_bytes rest = {all.data + end, all.size - end};
    credential->scheme.size = end;
    credential->token = trim(rest);
    name_scheme(credential);
    credential->as_is &= rest.size - credential->token.size == 1 && rest.data[0] == ' ';
}

void weir_credential_read(struct weir_credential *credential, struct weir_bytes value)
{
    struct weir_bytes all = trim(value);
    read_trimmed(credential, &all);
}

size_t weir_credential_write(const struct weir_credential *credential, char *out)
{
    char *end = out;
    const struct weir_bytes *scheme = &credential->scheme;
    for (size_t i = 0; i < scheme->size; i++)
        *end++ = credential->lower ? lower(scheme->data[i]) : scheme->data[i];
    if (scheme->size > 0)
        *end++ = ' ';
    if (credential->token.size > 0)
        memcpy(end, credential->token.data, credential->token.size);
    return (size_t)(end - out) + credential->token.size;
}

/* --- Several ---------------------------------------------------------------------------------- */

/* The end of a quoted text that begins at `at`, behind its quote; `at` where it does not end. */
static size_t quoted_end(struct weir_bytes text, size_t at)
{
    for (size_t i = at + 1; i < text.size; i++) {
        if (text.data[i] == '"')
            return i + 1;
        i += text.data[i] == '\\';
    }
    return at;
}

/* The comma, or the end, behind what begins at `at`. Only values of parameters are quoted. */
static size_t comma_find(struct weir_bytes text, size_t at, bool scheme)
{
    while (at < text.size && text.data[at] != ',') {
        bool quote = scheme && text.data[at] == '"' && at > 0 && text.data[at - 1] == '=';
        size_t end = quote ? quoted_end(text, at) : at;
        at = end > at ? end : at + 1;
    }
    return at;
}

/* `name=value` or `name="value"`; not a token that ends in padding. */
static bool is_parameter(const struct weir_bytes *text)
{
    size_t at = 0;
    while (at < text->size && text->data[at] != '=' && text->data[at] != '"' &&
           !is_space(text->data[at]))
        at++;
    if (at == 0 || at + 1 >= text->size || text->data[at] != '=' || text->data[at + 1] == '=')
        return false;
    at++;
    if (text->data[at] == '"')
        return quoted_end(*text, at) == text->size;
    while (at < text->size && !is_space(text->data[at]))
        at++;
    return at == text->size;
}

bool weir_credential_next(struct weir_bytes *rest, bool scheme, struct weir_bytes *credential)
{
    struct weir_bytes text = *rest;
    while (text.size > 0 && (text.data[0] == ',' || is_space(text.data[0]))) {
        text.data++;
        text.size--;
    }
    size_t end = comma_find(text, 0, scheme);
    struct weir_bytes one = trim((struct weir_bytes){text.data, end});
    struct weir_credential first;
    read_trimmed(&first, &one);
    bool parameters = scheme && first.scheme.size > 0 && is_parameter(&first.token);
    while (parameters && end < text.size) {
        size_t next = comma_find(text, end + 1, scheme);
        struct weir_bytes more = trim((struct weir_bytes){text.data + end + 1, next - end - 1});
        parameters = more.size == 0 || is_parameter(&more);
        end = parameters ? next : end;
    }
    *credential = trim((struct weir_bytes){text.data, end});
    *rest = (struct weir_bytes){text.data + end, text.size - end};
    return end > 0;
}
