/* SPDX-License-Identifier: Apache-2.0 */
/* see yaml.h */
#include "feature/envoy/rules/yaml.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text/hex.h"

#define LONG_TAG "tag:yaml.org,2002:"
#define LONG_TAG_SIZE (sizeof(LONG_TAG) - 1)

/* What a plain scalar may be by its text alone. */
struct word {
    const char *text;
    uint8_t type;
    bool boolean;
    double number;
};

static const struct word words[] = {
    {"", ENVOY_NULL, false, 0},
    {"~", ENVOY_NULL, false, 0},
    {"null", ENVOY_NULL, false, 0},
    {"Null", ENVOY_NULL, false, 0},
    {"NULL", ENVOY_NULL, false, 0},
    {"y", ENVOY_BOOL, true, 0},
    {"Y", ENVOY_BOOL, true, 0},
    {"yes", ENVOY_BOOL, true, 0},
    {"Yes", ENVOY_BOOL, true, 0},
    {"YES", ENVOY_BOOL, true, 0},
    {"true", ENVOY_BOOL, true, 0},
    {"True", ENVOY_BOOL, true, 0},
    {"TRUE", ENVOY_BOOL, true, 0},
    {"on", ENVOY_BOOL, true, 0},
    {"On", ENVOY_BOOL, true, 0},
    {"ON", ENVOY_BOOL, true, 0},
    {"n", ENVOY_BOOL, false, 0},
    {"N", ENVOY_BOOL, false, 0},
    {"no", ENVOY_BOOL, false, 0},
    {"No", ENVOY_BOOL, false, 0},
    {"NO", ENVOY_BOOL, false, 0},
    {"false", ENVOY_BOOL, false, 0},
    {"False", ENVOY_BOOL, false, 0},
    {"FALSE", ENVOY_BOOL, false, 0},
    {"off", ENVOY_BOOL, false, 0},
    {"Off", ENVOY_BOOL, false, 0},
    {"OFF", ENVOY_BOOL, false, 0},
    {".nan", ENVOY_FLOAT, false, (double)NAN},
    {".NaN", ENVOY_FLOAT, false, (double)NAN},
    {".NAN", ENVOY_FLOAT, false, (double)NAN},
    {".inf", ENVOY_FLOAT, false, (double)INFINITY},
    {".Inf", ENVOY_FLOAT, false, (double)INFINITY},
    {".INF", ENVOY_FLOAT, false, (double)INFINITY},
    {"+.inf", ENVOY_FLOAT, false, (double)INFINITY},
    {"+.Inf", ENVOY_FLOAT, false, (double)INFINITY},
    {"+.INF", ENVOY_FLOAT, false, (double)INFINITY},
    {"-.inf", ENVOY_FLOAT, false, -(double)INFINITY},
    {"-.Inf", ENVOY_FLOAT, false, -(double)INFINITY},
    {"-.INF", ENVOY_FLOAT, false, -(double)INFINITY},
};

static const char *const type_tags[] = {"!!null", "!!bool", "!!int", "!!float",
                                        "!!str",  "!!seq",  "!!map"};

/* Go's integers with a base in front: 10, 0x1f, 0o17, 017, 0b1; underscores are gone already. */
static bool read_integer(const char *text, struct envoy_resolved *out)
{
    unsigned base = 10;
    out->negative = *text == '-';
    text += *text == '-' || *text == '+';
    if (text[0] == '0' && text[1] != '\0') {
        char letter = (char)(text[1] | 0x20);
        base = letter == 'x' ? 16 : letter == 'b' ? 2 : 8;
        text += letter == 'x' || letter == 'b' || letter == 'o' ? 2 : 1;
    }
    if (*text == '\0')
        return false;
    uint64_t value = 0;
    for (; *text != '\0'; text++) {
        unsigned digit = (unsigned)weir_hex_value(*text); /* none: more than any base */
        if (digit >= base || __builtin_mul_overflow(value, base, &value) ||
            __builtin_add_overflow(value, digit, &value))
            return false;
    }
    out->magnitude = value;
    return !out->negative || value <= UINT64_C(1) << 63;
}

static const char *skip_digits(const char *text)
{
    while (*text >= '0' && *text <= '9')
        text++;
    return text;
}

/* [-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)? */
static bool read_float(const char *text, struct envoy_resolved *out)
{
    const char *at = text + (*text == '-' || *text == '+');
    const char *end = skip_digits(at);
    bool whole = end > at;
    if (*end == '.') {
        at = end + 1;
        end = skip_digits(at);
        if (!whole && end == at)
            return false;
    } else if (!whole) {
        return false;
    }
    if (*end == 'e' || *end == 'E') {
        at = end + 1;
        at += *at == '-' || *at == '+';
        end = skip_digits(at);
        if (end == at)
            return false;
    }
    if (*end != '\0')
        return false;
    out->number = strtod(text, NULL);
    return isfinite(out->number);
}

/* Numbers with their underscores taken out; longer ones than this are no numbers of ours. */
#define NUMBER_MAX 128

static uint8_t type_of_plain(const struct rules_node *node, struct envoy_resolved *out)
{
    if (strlen(node->text) != node->size)
        return ENVOY_TEXT;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(node->text, words[i].text) == 0) {
            out->boolean = words[i].boolean;
            out->number = words[i].number;
            return words[i].type;
        }
    }
    char plain[NUMBER_MAX];
    size_t used = 0;
    if (!strchr("+-.0123456789", node->text[0]) || node->size >= sizeof(plain))
        return ENVOY_TEXT;
    for (const char *at = node->text; *at != '\0'; at++)
        if (*at != '_')
            plain[used++] = *at;
    plain[used] = '\0';
    if (plain[0] != '.' && read_integer(plain, out))
        return ENVOY_INT;
    return read_float(plain, out) ? ENVOY_FLOAT : ENVOY_TEXT;
}

static bool resolve_tagged(const struct rules_node *node, struct envoy_resolved *out)
{
    bool known = strncmp(node->tag, LONG_TAG, LONG_TAG_SIZE) == 0;
    const char *name = known ? node->tag + LONG_TAG_SIZE : node->tag;
    int wanted = -1;
    for (int i = ENVOY_NULL; known && i < ENVOY_TEXT; i++)
        wanted = strcmp(type_tags[i] + 2, name) == 0 ? i : wanted;
    if (wanted < 0) { /* !!str, and tags that mean nothing here */
        out->type = ENVOY_TEXT;
        out->tag = known && strcmp(name, "binary") == 0 ? type_tags[ENVOY_TEXT] : node->tag;
        return out->tag == node->tag;
    }
    out->type = type_of_plain(node, out);
    out->tag = type_tags[out->type];
    if (out->type == ENVOY_INT && wanted == ENVOY_FLOAT) {
        out->number = out->negative ? -(double)out->magnitude : (double)out->magnitude;
        out->type = ENVOY_FLOAT;
        out->tag = type_tags[ENVOY_FLOAT];
    }
    return out->type == wanted;
}

bool envoy_resolve(const struct rules_node *node, struct envoy_resolved *out)
{
    *out = (struct envoy_resolved){0};
    if (node->kind != RULES_SCALAR)
        out->type = node->kind == RULES_LIST ? ENVOY_LIST : ENVOY_MAP;
    else if (node->tag)
        return resolve_tagged(node, out);
    else
        out->type = node->plain ? type_of_plain(node, out) : ENVOY_TEXT;
    out->tag = type_tags[out->type];
    return true;
}

bool envoy_is_merge(const struct rules_node *key)
{
    return key->kind == RULES_SCALAR && strcmp(key->text, "<<") == 0 &&
           ((key->plain && !key->tag) || (key->tag && strcmp(key->tag, LONG_TAG "merge") == 0));
}

/* --- Texts ------------------------------------------------------------------------------------ */

void envoy_text_add(struct envoy_text *text, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    int size = vsnprintf(text->data + text->used, text->size - text->used, format, values);
    va_end(values);
    size_t room = text->size - text->used - 1;
    text->used += size < 0 ? 0 : (size_t)size < room ? (size_t)size : room;
}

void envoy_text_add_bytes(struct envoy_text *text, const char *data, size_t size)
{
    size_t room = text->size - text->used - 1;
    size_t fits = size < room ? size : room;
    memcpy(text->data + text->used, data, fits);
    text->used += fits;
    text->data[text->used] = '\0';
}

/* The shortest decimal that is the same number; an exponent as Go writes it from 1e21 and below
 * 1e-4 on. */
static void add_float(struct envoy_text *text, double number)
{
    if (!isfinite(number)) {
        envoy_text_add(text, "%s", isnan(number) ? "NaN" : number > 0 ? "+Inf" : "-Inf");
        return;
    }
    char digits[32];
    int precision = 1;
    do {
        snprintf(digits, sizeof(digits), "%.*e", precision - 1, number);
    } while (strtod(digits, NULL) != number && ++precision <= 17);
    double size = fabs(number);
    if (size != 0 && (size < 1e-4 || size >= 1e21)) {
        envoy_text_add(text, "%s", digits);
        return;
    }
    long exponent = strtol(strchr(digits, 'e') + 1, NULL, 10);
    int places = precision - 1 - (int)exponent;
    envoy_text_add(text, "%.*f", places > 0 ? places : 0, number);
}

void envoy_text_add_value(struct envoy_text *text, const struct rules_node *node)
{
    struct envoy_resolved value;
    if (text->used + 1 >= text->size)
        return; /* it is cut: what would follow does not matter */
    envoy_resolve(node, &value);
    switch (value.type) {
    case ENVOY_NULL:
        envoy_text_add(text, "<nil>");
        break;
    case ENVOY_BOOL:
        envoy_text_add(text, "%s", value.boolean ? "true" : "false");
        break;
    case ENVOY_INT:
        envoy_text_add(text, "%s%llu", value.negative && value.magnitude > 0 ? "-" : "",
                       (unsigned long long)value.magnitude);
        break;
    case ENVOY_FLOAT:
        add_float(text, value.number);
        break;
    case ENVOY_TEXT:
        envoy_text_add_bytes(text, node->text, node->size);
        break;
    default:
        envoy_text_add(text, value.type == ENVOY_LIST ? "[" : "map[");
        for (uint32_t i = 0; i < node->size; i++) {
            bool is_value = value.type == ENVOY_MAP && i % 2 == 1;
            envoy_text_add(text, "%s", is_value ? ":" : i > 0 ? " " : "");
            envoy_text_add_value(text, node->items[i]);
        }
        envoy_text_add(text, "]");
    }
}

void envoy_text_add_mismatch(struct envoy_text *text, const struct rules_node *node,
                             const char *into)
{
    struct envoy_resolved value;
    envoy_resolve(node, &value);
    const char *tag = node->tag ? node->tag : value.tag;
    bool known = strncmp(tag, LONG_TAG, LONG_TAG_SIZE) == 0;
    envoy_text_add(text, "line %u: cannot unmarshal %s%s", node->line, known ? "!!" : "",
                   known ? tag + LONG_TAG_SIZE : tag);
    if (node->kind == RULES_SCALAR) {
        bool cut = node->size > 10;
        envoy_text_add(text, " `");
        envoy_text_add_bytes(text, node->text, cut ? 7 : node->size);
        envoy_text_add(text, cut ? "...`" : "`");
    }
    envoy_text_add(text, " into %s", into);
}
