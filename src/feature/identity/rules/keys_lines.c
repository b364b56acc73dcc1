/* SPDX-License-Identifier: Apache-2.0 */
/* see keys_lines.h */
#include "feature/identity/rules/keys_lines.h"

#include <string.h>

/* Of each byte: what it is, and, of a hexadecimal digit, its value. */
enum { VALUE = 0x0F, HEX = 0x10, WORD = 0x20, INSIDE = 0x40 }; /* begins a word; stands within it */
static const uint8_t classes[256] = {
    /* clang-format off: rows of 16 */
    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,
    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,
    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0x40, 0x40, 0,
    0x70, 0x71, 0x72, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78, 0x79, 0,    0,    0,    0,    0,    0,
    0x40, 0x7A, 0x7B, 0x7C, 0x7D, 0x7E, 0x7F, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60,
    0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0,    0,    0,    0,    0x60,
    0,    0x7A, 0x7B, 0x7C, 0x7D, 0x7E, 0x7F, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60,
    0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0x60, 0,    0,    0,    0,    0,
    /* clang-format on */
};

static unsigned class_of(char byte)
{
    return classes[(unsigned char)byte];
}

bool rules_digest_read(uint8_t digest[WEIR_DIGEST_BYTES], const char *text, size_t size)
{
    unsigned all = HEX;
    if (size != 2 * WEIR_DIGEST_BYTES)
        return false;
    for (unsigned i = 0; i < WEIR_DIGEST_BYTES; i++) {
        unsigned high = class_of(text[2 * i]), low = class_of(text[2 * i + 1]);
        digest[i] = (uint8_t)((high & VALUE) << 4 | (low & VALUE));
        all &= high & low;
    }
    return all == HEX;
}

static const char *skip_spaces(const char *at, const char *end)
{
    while (at < end && *at == ' ')
        at++;
    return at;
}

/* A word; empty when there is none. */
static struct weir_bytes take_word(const char **at, const char *end)
{
    const char *start = *at;
    if (*at < end && (class_of(**at) & WORD) != 0)
        while (*at < end && (class_of(**at) & INSIDE) != 0)
            ++*at;
    return (struct weir_bytes){start, (size_t)(*at - start)};
}

/* A colon, and the space that makes it one in YAML. */
static bool take_colon(const char **at, const char *end)
{
    if (end - *at < 2 || (*at)[0] != ':' || (*at)[1] != ' ')
        return false;
    *at = skip_spaces(*at + 2, end);
    return true;
}

/* What stands for rates in YAML's plain style: to the comma or bracket behind it. */
static struct weir_bytes take_rates(const char **at, const char *end)
{
    const char *start = *at;
    if (*at < end && (class_of(**at) & WORD) != 0)
        while (*at < end && (class_of(**at) & WORD || **at == '/' || **at == ' '))
            ++*at;
    return (struct weir_bytes){start, (size_t)(*at - start)};
}

/* "[10/s, 500/h]" */
static bool take_list(const char **at, const char *end)
{
    do {
        *at = skip_spaces(*at + 1, end);
        if (take_rates(at, end).size == 0)
            return false;
    } while (*at < end && **at == ',');
    if (*at == end || **at != ']')
        return false;
    *at = skip_spaces(*at + 1, end);
    return true;
}

/* "{ api: 5000/min burst 200 }" */
static bool take_limits(struct rules_keys_line *line, const char **at, const char *end)
{
    const char *start = *at + 1;
    if (*at == end || **at != '{')
        return false;
    do {
        *at = skip_spaces(*at + 1, end);
        if (take_word(at, end).size == 0 || !take_colon(at, end) || *at == end)
            return false;
        if (**at == '[' ? !take_list(at, end) : take_rates(at, end).size == 0)
            return false;
    } while (*at < end && **at == ',');
    if (*at == end || **at != '}')
        return false;
    line->limits = (struct weir_bytes){start, (size_t)(*at - start)};
    ++*at;
    return true;
}

/* Takes what take_limits has found good. */
bool rules_keys_lines_limit(struct weir_bytes *rest, struct weir_bytes *name,
                            struct weir_bytes *rates)
{
    const char *end = rest->data + rest->size, *at = skip_spaces(rest->data, end);
    if (at == end)
        return false;
    *name = take_word(&at, end);
    take_colon(&at, end);
    bool list = *at == '[';
    const char *start = at + list;
    while (at < end && *at != (list ? ']' : ','))
        at++;
    *rates = (struct weir_bytes){start, (size_t)(at - start)};
    while (rates->size > 0 && rates->data[rates->size - 1] == ' ')
        rates->size--;
    at = skip_spaces(at + list, end);
    at += at < end; /* the comma */
    *rest = (struct weir_bytes){at, (size_t)(end - at)};
    return true;
}

static struct weir_bytes *field_of(struct rules_keys_line *line, struct weir_bytes name)
{
    bool four = name.size == 4;
    return four && memcmp(name.data, "user", 4) == 0               ? &line->user
           : four && memcmp(name.data, "plan", 4) == 0             ? &line->plan
           : name.size == 3 && memcmp(name.data, "org", 3) == 0    ? &line->org
           : name.size == 6 && memcmp(name.data, "limits", 6) == 0 ? &line->limits
                                                                   : NULL;
}

/* name ": " word, where the field has not been given before. */
static bool take_field(struct rules_keys_line *line, const char **at, const char *end)
{
    struct weir_bytes *field = field_of(line, take_word(at, end));
    if (!field || field->data || !take_colon(at, end))
        return false;
    if (field == &line->limits) {
        bool good = take_limits(line, at, end);
        *at = skip_spaces(*at, end);
        return good;
    }
    *field = take_word(at, end);
    *at = skip_spaces(*at, end);
    return field->size > 0 && field->size <= WEIR_IDENTITY_MAX;
}

static bool is_comment(const char *at, const char *end)
{
    for (; at < end; at++)
        if (*at < ' ' || *at > '~')
            return false;
    return true;
}

/* Nothing, or a comment. */
static bool is_empty(struct weir_bytes text)
{
    const char *end = text.data + text.size, *at = skip_spaces(text.data, end);
    return at == end || (*at == '#' && is_comment(at, end));
}

static bool line_read(struct rules_keys_line *line, const char *text, size_t size)
{
    const char *end = text + size;
    if (size < 2 * WEIR_DIGEST_BYTES ||
        !rules_digest_read(line->digest, text, 2 * WEIR_DIGEST_BYTES))
        return false;
    const char *at = text + 2 * WEIR_DIGEST_BYTES;
    line->user = line->org = line->plan = line->limits = (struct weir_bytes){NULL, 0};
    if (!take_colon(&at, end) || at == end || *at != '{')
        return false;
    do {
        at = skip_spaces(at + 1, end);
        if (!take_field(line, &at, end))
            return false;
    } while (at < end && *at == ',');
    bool closed = at < end && *at == '}' && skip_spaces(at + 1, end) == end;
    return closed && line->user.data;
}

/* The next line, without its end; data == NULL at the end of the file, or where a line does not end
 * within RULES_KEYS_LINE_BYTES. */
static struct weir_bytes next_bytes(struct rules_keys_lines *lines)
{
    char *end = memchr(lines->bytes + lines->from, '\n', lines->to - lines->from);
    if (!end) {
        lines->to -= lines->from;
        memmove(lines->bytes, lines->bytes + lines->from, lines->to);
        lines->from = 0;
        lines->to +=
            fread(lines->bytes + lines->to, 1, sizeof(lines->bytes) - lines->to, lines->file);
        end = memchr(lines->bytes, '\n', lines->to);
    }
    if (!end && (lines->to == lines->from || lines->to == sizeof(lines->bytes)))
        return (struct weir_bytes){NULL, 0};
    const char *start = lines->bytes + lines->from;
    size_t size = end ? (size_t)(end - start) : lines->to - lines->from;
    lines->from += size + (end != NULL);
    lines->number++;
    return (struct weir_bytes){start, size};
}

enum rules_keys_line_kind rules_keys_lines_next(struct rules_keys_lines *lines,
                                                struct rules_keys_line *line)
{
    struct weir_bytes text;
    while ((text = next_bytes(lines)).data) {
        if (!is_empty(text)) {
            bool caller = line_read(line, text.data, text.size);
            return caller ? RULES_KEYS_LINE_CALLER : RULES_KEYS_LINE_OTHER;
        }
    }
    bool whole = lines->from == lines->to && !ferror(lines->file);
    return whole ? RULES_KEYS_LINE_END : RULES_KEYS_LINE_OTHER;
}
