/* SPDX-License-Identifier: Apache-2.0 */
/* see keyword.h */
#include "rules/load/keyword.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "core/bytes.h"
#include "rules/load/environment.h"
#include "rules/load/numbers.h"

/* --- Bounds as texts -------------------------------------------------------------------------- */

struct unit {
    const char *name;
    uint64_t size;
};

static const struct unit times[] = {
    {"d", RULES_DAY}, {"h", RULES_HOUR}, {"min", RULES_MINUTE}, {"s", RULES_S}, {"ms", RULES_MS}};
static const struct unit sizes[] = {{"TiB", UINT64_C(1) << 40},
                                    {"GiB", UINT64_C(1) << 30},
                                    {"MiB", UINT64_C(1) << 20},
                                    {"KiB", UINT64_C(1) << 10}};

#define BOUND_MAX 32

/* A bound in its largest unit. */
static void put_bound(char out[BOUND_MAX], uint64_t value, const struct unit *units, size_t count)
{
    size_t i = 0;
    while (i < count && (value == 0 || value % units[i].size != 0))
        i++;
    if (i < count)
        snprintf(out, BOUND_MAX, "%llu%s", (unsigned long long)(value / units[i].size),
                 units[i].name);
    else
        snprintf(out, BOUND_MAX, "%llu", (unsigned long long)value);
}

static void put_bound_of(char out[BOUND_MAX], uint64_t value, uint8_t kind)
{
    if (kind == RULES_DURATION && value == 0)
        snprintf(out, BOUND_MAX, "0s");
    else if (kind == RULES_DURATION)
        put_bound(out, value, times, sizeof(times) / sizeof(times[0]));
    else if (kind == RULES_SIZE)
        put_bound(out, value, sizes, sizeof(sizes) / sizeof(sizes[0]));
    else
        snprintf(out, BOUND_MAX, "%llu%s", (unsigned long long)value,
                 kind == RULES_PERCENT ? "%" : "");
}

const char *rules_range_text(struct rules_range *range, const struct rules_keyword *keyword)
{
    char least[BOUND_MAX], most[BOUND_MAX];
    put_bound_of(least, keyword->least, keyword->kind);
    put_bound_of(most, keyword->most, keyword->kind);
    snprintf(range->text, sizeof(range->text), "%s to %s%s%s", least, most,
             keyword->word ? ", or " : "", keyword->word ? keyword->word : "");
    return range->text;
}

/* --- Fields of a struct ----------------------------------------------------------------------- */

static void put_number(const struct rules_keyword *keyword, void *into, uint64_t value)
{
    void *at = (char *)into + keyword->at;
    switch (keyword->width) {
    case sizeof(uint8_t):
        *(uint8_t *)at = (uint8_t)value;
        break;
    case sizeof(uint16_t):
        *(uint16_t *)at = (uint16_t)value;
        break;
    case sizeof(uint32_t):
        *(uint32_t *)at = (uint32_t)value;
        break;
    default:
        *(uint64_t *)at = value;
        break;
    }
}

static void put_text(const struct rules_keyword *keyword, void *into, const char *text)
{
    memcpy((char *)into + keyword->at, &text, sizeof(text));
}

static bool is_text(uint8_t kind)
{
    return kind == RULES_TEXT || kind == RULES_PLACE || kind == RULES_FILE;
}

static uint32_t word_count(const char *const *words)
{
    uint32_t count = 0;
    while (words[count])
        count++;
    return count;
}

/* --- Values ----------------------------------------------------------------------------------- */

static bool read_text(struct rules_loader *loader, const struct rules_keyword *keyword,
                      const struct rules_node *node, void *into)
{
    struct weir_bytes text;
    bool good = keyword->kind == RULES_TEXT ? rules_read_text(loader, node, keyword->name, &text)
                                            : rules_read_place(loader, node, keyword->name, &text);
    if (!good)
        return false;
    if (text.size == 0 && (keyword->flags & RULES_FILLED) != 0) {
        rules_problem(loader, node, "`%s` is empty; remove it", keyword->name);
        return false;
    }
    put_text(keyword, into,
             keyword->kind == RULES_FILE ? rules_path_of(loader, text)
                                         : rules_keep_text(loader, text.data, text.size));
    return true;
}

static bool read_size(struct rules_loader *loader, const struct rules_keyword *keyword,
                      const struct rules_node *node, uint64_t *value)
{
    struct weir_reason reason;
    struct weir_bytes text;
    struct rules_quote quote;
    struct rules_range range;
    uint64_t size;
    if (!rules_read_text(loader, node, keyword->name, &text))
        return false;
    if (weir_size_parse(&size, text.data, text.size, &reason) < 0) {
        rules_problem(loader, node, "%s", reason.text);
        return false;
    }
    if (size < keyword->least || size > keyword->most) {
        rules_problem(loader, node, "`%s` must be %s, not %s", keyword->name,
                      rules_range_text(&range, keyword), rules_quote(&quote, text.data, text.size));
        return false;
    }
    *value = size;
    return true;
}

static bool is_word(const struct rules_keyword *keyword, const struct rules_node *node)
{
    return keyword->word && node->kind == RULES_SCALAR &&
           weir_bytes_are((struct weir_bytes){node->text, node->size}, keyword->word);
}

static bool read_percent(struct rules_loader *loader, const struct rules_keyword *keyword,
                         const struct rules_node *node, uint64_t *value)
{
    uint32_t percent;
    bool good = rules_read_percent(loader, node, keyword->name, (uint32_t)keyword->least,
                                   (uint32_t)keyword->most, keyword->example, &percent);
    *value = good ? percent : *value;
    return good;
}

static bool read_flag(struct rules_loader *loader, const struct rules_keyword *keyword,
                      const struct rules_node *node, uint64_t *value)
{
    bool flag = false;
    bool good = rules_read_bool(loader, node, keyword->name, &flag);
    *value = flag;
    return good;
}

bool rules_keyword_number(struct rules_loader *loader, const struct rules_keyword *keyword,
                          const struct rules_node *node, uint64_t *value)
{
    struct rules_range range;
    int choice;
    if (is_word(keyword, node)) {
        *value = keyword->word_value;
        return true;
    }
    switch (keyword->kind) {
    case RULES_FLAG:
        return read_flag(loader, keyword, node, value);
    case RULES_DURATION:
        return rules_read_duration(loader, node, keyword->name, keyword->least, keyword->most,
                                   rules_range_text(&range, keyword), value);
    case RULES_SIZE:
        return read_size(loader, keyword, node, value);
    case RULES_PERCENT:
        return read_percent(loader, keyword, node, value);
    case RULES_CHOICE:
        choice = rules_read_choice(loader, node, keyword->name, keyword->words,
                                   word_count(keyword->words));
        *value = choice > 0 ? (uint64_t)choice : 0;
        return choice >= 0;
    default:
        return rules_read_number(loader, node, keyword->name, keyword->least, keyword->most, value);
    }
}

bool rules_keyword_read(struct rules_loader *loader, const struct rules_keyword *keyword,
                        const struct rules_node *node, void *into)
{
    uint64_t value = 0;
    if (keyword->parse)
        return keyword->parse(loader, keyword, node, (char *)into + keyword->at);
    if (is_text(keyword->kind))
        return read_text(loader, keyword, node, into);
    if (!rules_keyword_number(loader, keyword, node, &value))
        return false;
    put_number(keyword, into, value);
    return true;
}

/* --- Defaults --------------------------------------------------------------------------------- */

/* False: `otherwise` is no value of the row. */
static bool parse_default(const struct rules_keyword *keyword, uint64_t *value)
{
    struct weir_reason reason;
    const char *text = keyword->otherwise;
    size_t size = strlen(text);
    *value = 0;
    if (keyword->word && strcmp(text, keyword->word) == 0) {
        *value = keyword->word_value;
        return true;
    }
    switch (keyword->kind) {
    case RULES_FLAG:
        *value = strcmp(text, "true") == 0;
        return *value == 1 || strcmp(text, "false") == 0;
    case RULES_DURATION:
        return weir_duration_parse(value, text, size, &reason) == 0;
    case RULES_SIZE:
        return weir_size_parse(value, text, size, &reason) == 0;
    case RULES_CHOICE:
        while (keyword->words[*value] && strcmp(keyword->words[*value], text) != 0)
            ++*value;
        return keyword->words[*value];
    default:
        size -= size > 0 && keyword->kind == RULES_PERCENT;
        return weir_digits_parse(value, text, size) == (int)size && size > 0;
    }
}

uint64_t rules_keyword_number_or_default(struct rules_loader *loader,
                                         const struct rules_keyword *keyword,
                                         const struct rules_node *node)
{
    uint64_t value = 0, read = 0;
    bool good = parse_default(keyword, &value);
    assert(good); /* as below */
    (void)good;
    return node && rules_keyword_number(loader, keyword, node, &read) ? read : value;
}

void rules_section_defaults(const struct rules_section *section, void *into)
{
    for (uint32_t i = 0; i < section->count; i++) {
        const struct rules_keyword *keyword = &section->keywords[i];
        uint64_t value;
        if (keyword->width == 0 || !keyword->otherwise)
            continue;
        if (is_text(keyword->kind)) {
            put_text(keyword, into, keyword->otherwise);
        } else {
            bool good = parse_default(keyword, &value);
            assert(good); /* tests/unit/rules/load/test_keyword.c reads every one */
            if (good)
                put_number(keyword, into, value);
        }
    }
}

/* --- Sections --------------------------------------------------------------------------------- */

void rules_section_name(const struct rules_section *section, struct rules_field *fields)
{
    for (uint32_t i = 0; i < section->count; i++)
        fields[i] = (struct rules_field){section->keywords[i].name, NULL, NULL};
}

bool rules_section_has(const struct rules_section *section, uint32_t row)
{
    return section->only == 0 || (section->keywords[row].flags & section->only) != 0;
}

/* A key that this program cannot obey is refused: nothing that it asks for is off in silence. */
static void refuse_features(struct rules_loader *loader, const struct rules_section *section,
                            const struct rules_field *fields)
{
    for (uint32_t i = 0; i < section->count; i++) {
        const char *feature = section->keywords[i].feature;
        if (feature && fields[i].key && !loader->problems->has(feature))
            rules_problem(loader, fields[i].key,
                          "`%s` needs the feature %s, without which this weir is built",
                          fields[i].name, feature);
    }
}

bool rules_section_find(struct rules_loader *loader, const struct rules_section *section,
                        const struct rules_node *node, struct rules_field *fields)
{
    struct rules_field some[RULES_KEYWORDS_MAX];
    uint32_t count = 0, from = 0;
    rules_section_name(section, fields);
    for (uint32_t i = 0; i < section->count; i++)
        if (rules_section_has(section, i))
            some[count++] = fields[i];
    bool mapping = rules_fields(loader, node, section->what, some, count);
    for (uint32_t i = 0; i < section->count; i++)
        if (rules_section_has(section, i))
            fields[i] = some[from++];
    if (loader->problems->has)
        refuse_features(loader, section, fields);
    return mapping;
}

void rules_section_read(struct rules_loader *loader, const struct rules_section *section,
                        const struct rules_field *fields, void *into)
{
    for (uint32_t i = 0; i < section->count; i++)
        if (section->keywords[i].width > 0 && fields[i].value)
            (void)rules_keyword_read(loader, &section->keywords[i], fields[i].value, into);
}

bool rules_section_load(struct rules_loader *loader, const struct rules_section *section,
                        const struct rules_node *node, struct rules_field *fields, void *into)
{
    rules_section_defaults(section, into);
    if (!rules_section_find(loader, section, node, fields))
        return false;
    rules_section_read(loader, section, fields, into);
    return true;
}
