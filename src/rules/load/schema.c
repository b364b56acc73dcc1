/* SPDX-License-Identifier: Apache-2.0 */
/* see schema.h */
#include "rules/load/schema.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "feature/identity/rules/keys_load.h"
#include "rules/load/grammar.h"
#include "rules/load/numbers.h"

/* --- Expressions of numbers ------------------------------------------------------------------- */

#define PATTERN_MAX 8192 /* the longest is that of a duration, 1,300 bytes */

/* A text that grows; too long a one is cut, which a test would find. */
struct text {
    char data[PATTERN_MAX];
    size_t size;
};

static void __attribute__((format(printf, 2, 3))) put(struct text *text, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    int size = vsnprintf(text->data + text->size, PATTERN_MAX - text->size, format, values);
    va_end(values);
    if (size > 0 && (size_t)size < PATTERN_MAX - text->size)
        text->size += (size_t)size;
}

#define DIGITS_MAX 20

/* Numbers of as many digits from `least` to `most`, whose digits differ in a run at the end only:
 * "4[2-7][0-9]{3}". */
static void put_run(struct text *text, uint64_t least, uint64_t most)
{
    char from[DIGITS_MAX + 1], to[DIGITS_MAX + 1];
    unsigned any = 0;
    snprintf(from, sizeof(from), "%" PRIu64, least);
    snprintf(to, sizeof(to), "%" PRIu64, most);
    for (size_t i = 0; from[i]; i++)
        if (from[i] == to[i])
            put(text, "%c", from[i]);
        else if (from[i] == '0' && to[i] == '9')
            any++;
        else
            put(text, "[%c-%c]", from[i], to[i]);
    if (any > 0)
        put(text, any > 1 ? "[0-9]{%u}" : "[0-9]", any);
}

/* The end of the run that begins at `least`: as many 9 at its end as digits are 0 there, up to
 * `most`. */
static uint64_t run_end(uint64_t least, uint64_t most)
{
    uint64_t power = 1;
    while (least % (power * 10) == 0 && least + power * 10 - 1 <= most && power < least)
        power *= 10;
    uint64_t digit = least / power % 10;
    uint64_t steps = 9 - digit, room = (most - least + 1) / power;
    return least + ((room - 1 < steps ? room - 1 : steps) + 1) * power - 1;
}

static uint64_t ten_to(unsigned power)
{
    uint64_t ten = 1;
    while (power-- > 0)
        ten *= 10;
    return ten;
}

/* Whether a run is all numbers of as many digits as `from` has: 10 to 99. */
static bool is_decade(uint64_t from, uint64_t to)
{
    uint64_t power = 1;
    while (power <= from / 10)
        power *= 10;
    return from == power && to == power * 10 - 1;
}

/* The decimal numbers of a range, with any zeros before them: "0*(9|[1-9][0-9]{1,2}|1000)". */
static void put_range(struct text *text, uint64_t least, uint64_t most)
{
    unsigned digits = 1, few = 0;
    put(text, "0*(%s", least == 0 ? "0" : ""); /* 0 itself is among the zeros */
    bool more = least == 0;
    for (uint64_t from = least > 0 ? least : 1; from <= most;) {
        uint64_t to = run_end(from, most);
        while (digits < DIGITS_MAX && ten_to(digits) <= from)
            digits++;
        bool decade = is_decade(from, to);
        few = decade && few == 0 ? digits : few;
        bool last = !decade || to == most || !is_decade(to + 1, run_end(to + 1, most));
        if (last) {
            put(text, more ? "|" : "");
            if (decade)
                put(text, "[1-9][0-9]{%u,%u}", few - 1, digits - 1);
            else
                put_run(text, from, to);
            more = true;
            few = 0;
        }
        from = to + 1;
    }
    put(text, ")");
}

/* The names of all units of one length, "s|sec|second|seconds". */
static void put_units(struct text *text, uint64_t length_ns)
{
    const char *name;
    uint64_t unit_ns;
    bool more = false;
    for (uint32_t i = 0; (name = rules_time_unit(i, &unit_ns)); i++) {
        if (unit_ns != length_ns)
            continue;
        put(text, "%s%s", more ? "|" : "", name);
        more = true;
    }
}

/* Whether no unit before this one is as long. */
static bool is_first(uint32_t number, uint64_t length_ns)
{
    uint64_t unit_ns;
    for (uint32_t i = 0; i < number; i++)
        if (rules_time_unit(i, &unit_ns) && unit_ns == length_ns)
            return false;
    return true;
}

static void put_durations(struct text *text, uint64_t least, uint64_t most)
{
    uint64_t unit_ns;
    bool more = false;
    least = least > 0 ? least : 1; /* nothing lasts no time */
    for (uint32_t i = 0; rules_time_unit(i, &unit_ns); i++) {
        uint64_t from = (least + unit_ns - 1) / unit_ns, to = most / unit_ns;
        if (from > to || !is_first(i, unit_ns))
            continue;
        put(text, more ? "|" : "");
        put_range(text, from, to);
        put(text, "(");
        put_units(text, unit_ns);
        put(text, ")");
        more = true;
    }
}

static void put_sizes(struct text *text, uint64_t least, uint64_t most)
{
    static const char *const units[] = {"", "KiB", "MiB", "GiB", "TiB"};
    bool more = false;
    for (unsigned i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        uint64_t size = UINT64_C(1) << 10 * i, from = (least + size - 1) / size, to = most / size;
        if (from > to)
            continue;
        put(text, more ? "|" : "");
        put_range(text, from, to);
        put(text, "%s", units[i]);
        more = true;
    }
}

static void put_rates(struct text *text)
{
    const char *name;
    uint64_t unit_ns;
    put(text, "unlimited|plan|[0-9]+([.][0-9]+)?/[0-9]*(");
    for (uint32_t i = 0; (name = rules_time_unit(i, &unit_ns)); i++)
        put(text, "%s%s", i > 0 ? "|" : "", name);
    put(text, ")( +burst +[0-9]+)?");
}

/* --- One value -------------------------------------------------------------------------------- */

static json_t *scalar_type(void)
{
    return json_pack("{s:[s,s,s,s]}", "type", "string", "number", "boolean", "null");
}

static void set_pattern(json_t *schema, const struct rules_keyword *keyword, struct text *inner)
{
    struct text whole = {.size = 0};
    struct rules_range range;
    put(&whole, "^(%s%s%s)$", inner->data, keyword->word ? "|" : "",
        keyword->word ? keyword->word : "");
    json_object_set_new(schema, "pattern", json_string(whole.data));
    if (keyword->most > 0) /* what editors show in place of the pattern */
        json_object_set_new(schema, "patternErrorMessage",
                            json_string(rules_range_text(&range, keyword)));
}

/* "5", 5, and "auto". */
static json_t *number_schema(const struct rules_keyword *keyword, struct text *inner)
{
    json_t *schema = json_pack("{s:[s,s],s:I,s:I}", "type", "integer", "string", "minimum",
                               (json_int_t)keyword->least, "maximum", (json_int_t)keyword->most);
    set_pattern(schema, keyword, inner);
    return schema;
}

static json_t *choice_schema(const struct rules_keyword *keyword)
{
    json_t *words = json_array();
    for (const char *const *word = keyword->words; *word; word++) {
        json_array_append_new(words, json_string(*word));
        if (strspn(*word, "0123456789") == strlen(*word))
            json_array_append_new(words, json_integer(strtol(*word, NULL, 10)));
    }
    return json_pack("{s:o}", "enum", words);
}

/* A text, and `true` or 0 where YAML reads the row's other word so. */
static json_t *text_schema(const struct rules_keyword *keyword, struct text *inner)
{
    json_t *schema = json_pack("{s:s}", "type", "string"), *word = NULL;
    set_pattern(schema, keyword, inner);
    if (keyword->word && strcmp(keyword->word, "true") == 0)
        word = json_true();
    else if (keyword->word && strcmp(keyword->word, "0") == 0)
        word = json_integer(0);
    return word ? json_pack("{s:[o,{s:o}]}", "anyOf", schema, "const", word) : schema;
}

/* A scalar of the row; NULL: there is none. */
static json_t *scalar_schema(const struct rules_keyword *keyword)
{
    struct text inner = {.size = 0};
    switch (keyword->kind) {
    case RULES_MAPPING:
        return NULL;
    case RULES_FLAG:
        return json_pack("{s:s}", "type", "boolean");
    case RULES_CHOICE:
        return choice_schema(keyword);
    case RULES_NUMBER:
        put_range(&inner, keyword->least, keyword->most);
        return number_schema(keyword, &inner);
    case RULES_SIZE:
        put_sizes(&inner, keyword->least, keyword->most);
        return number_schema(keyword, &inner);
    case RULES_PERCENT:
        put_range(&inner, keyword->least, keyword->most);
        put(&inner, "%%");
        return text_schema(keyword, &inner);
    case RULES_DURATION:
        put_durations(&inner, keyword->least, keyword->most);
        return text_schema(keyword, &inner);
    case RULES_RATE:
        put_rates(&inner);
        return text_schema(keyword, &inner);
    case RULES_NAME:
        return json_pack("{s:[s,s,s,s],s:s}", "type", "string", "number", "boolean", "null",
                         "pattern", "^[a-z0-9._-]{1,64}$");
    case RULES_STATUS:
        return json_pack("{s:[s,s],s:i,s:i,s:s}", "type", "integer", "string", "minimum", 100,
                         "maximum", 599, "pattern", "^[1-5]([0-9][0-9]|xx)$");
    default:
        return scalar_type();
    }
}

/* --- Sections --------------------------------------------------------------------------------- */

/* Whether the program has a feature; NULL: any. */
typedef bool (*schema_has)(const char *feature);

static json_t *section_schema(const struct rules_section *section, schema_has has);

/* The alternatives of a list as one schema; takes the list over. */
static json_t *any_of(json_t *forms)
{
    if (json_array_size(forms) != 1)
        return json_pack("{s:o}", "anyOf", forms);
    json_t *only = json_incref(json_array_get(forms, 0));
    json_decref(forms);
    return only;
}

/* One value: a scalar, a mapping, or either. */
static json_t *item_schema(const struct rules_keyword *keyword, schema_has has)
{
    json_t *forms = json_array(), *scalar = scalar_schema(keyword);
    if (scalar)
        json_array_append_new(forms, scalar);
    for (const struct rules_section *s = keyword->section; s; s = s->or_else)
        json_array_append_new(forms, section_schema(s, has));
    return any_of(forms);
}

/* Markdown as plain text: links become their words, and backquotes go. */
static json_t *plain(const char *markdown)
{
    struct text text = {.size = 0};
    for (const char *at = markdown; *at; at++) {
        const char *close = *at == ']' && at[1] == '(' ? strchr(at, ')') : NULL;
        if (close)
            at = close;
        else if (*at != '`' && !(*at == '[' && strstr(at, "](")))
            put(&text, "%c", *at);
    }
    return json_string(text.data);
}

static json_t *keyword_schema(const struct rules_keyword *keyword, schema_has has)
{
    json_t *schema = item_schema(keyword, has);
    if (keyword->many != RULES_ONE) {
        json_t *list = json_pack("{s:s,s:O}", "type", "array", "items", schema);
        schema = keyword->many == RULES_LISTED ? (json_decref(schema), list)
                                               : json_pack("{s:[o,o]}", "anyOf", schema, list);
    }
    if (schema && keyword->doc)
        json_object_set_new(schema, "description", plain(keyword->doc));
    return schema;
}

static json_t *section_schema(const struct rules_section *section, schema_has has)
{
    json_t *properties = json_object(), *required = json_array();
    for (uint32_t i = 0; i < section->count; i++) {
        const struct rules_keyword *keyword = &section->keywords[i];
        if (!rules_section_has(section, i) || (has && keyword->feature && !has(keyword->feature)))
            continue;
        json_object_set_new(properties, keyword->name, keyword_schema(keyword, has));
        if ((keyword->flags & RULES_REQUIRED) != 0 && section->only == 0)
            json_array_append_new(required, json_string(keyword->name));
    }
    json_t *others = section->others ? keyword_schema(section->others, has) : NULL;
    json_t *schema = json_pack("{s:s,s:o}", "type", "object", "properties", properties);
    if (others && section->other_keys)
        json_object_set_new(schema, "patternProperties",
                            json_pack("{s:o}", section->other_keys, others));
    json_object_set_new(schema, "additionalProperties",
                        others && !section->other_keys ? others : json_false());
    if (json_array_size(required) > 0)
        json_object_set(schema, "required", required);
    json_decref(required);
    return schema;
}

json_t *rules_schema(bool keys, bool (*has)(const char *feature))
{
    json_t *schema = section_schema(keys ? &rules_section_keys : &rules_section_file, has);
    json_t *whole =
        json_pack("{s:s,s:s,s:s}", "$schema", "http://json-schema.org/draft-07/schema#", "title",
                  keys ? "Callers of weir: keys.yaml" : "Rules of weir: weir.yaml", "$comment",
                  "Printed by `weir validate --schema`.");
    if (keys) /* an empty file has no callers */
        json_object_set_new(schema, "type", json_pack("[s,s]", "object", "null"));
    json_object_update(whole, schema);
    json_decref(schema);
    return whole;
}

/* --- The table -------------------------------------------------------------------------------- */

static const char *const kind_names[] = {
    [RULES_ANY] = "any",     [RULES_MAPPING] = "mapping", [RULES_TEXT] = "text",
    [RULES_PLACE] = "place", [RULES_FILE] = "file",       [RULES_NAME] = "name",
    [RULES_FLAG] = "flag",   [RULES_NUMBER] = "number",   [RULES_DURATION] = "duration",
    [RULES_SIZE] = "size",   [RULES_PERCENT] = "percent", [RULES_CHOICE] = "choice",
    [RULES_RATE] = "rate",   [RULES_STATUS] = "status",
};

static void print_section(FILE *out, const char *place, const struct rules_section *section);

static void print_keyword(FILE *out, const char *place, const struct rules_keyword *keyword)
{
    char here[256];
    const char *name = keyword->name ? keyword->name : "*";
    snprintf(here, sizeof(here), "%s%s%s", place, *place ? "." : "", name);
    fprintf(out, "%s\t%s\t%" PRIu64 "\t%" PRIu64 "\t", here, kind_names[keyword->kind],
            keyword->least, keyword->most);
    for (const char *const *word = keyword->words; word && *word; word++)
        fprintf(out, "%s%s", word > keyword->words ? " " : "", *word);
    const char *absent = keyword->absent                          ? keyword->absent
                         : (keyword->flags & RULES_REQUIRED) != 0 ? "required"
                                                                  : NULL;
    const char *const texts[] = {keyword->word, keyword->otherwise, absent, keyword->doc,
                                 keyword->why};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        fprintf(out, "\t%s", texts[i] ? texts[i] : "");
    fputc('\n', out);
    print_section(out, here, keyword->section);
}

static void print_section(FILE *out, const char *place, const struct rules_section *section)
{
    for (const struct rules_section *s = section; s; s = s->or_else) {
        for (uint32_t i = 0; i < s->count; i++)
            if (rules_section_has(s, i) && s->only == 0)
                print_keyword(out, place, &s->keywords[i]);
        if (s->others)
            print_keyword(out, place, s->others);
    }
}

void rules_print_keywords(FILE *out)
{
    print_section(out, "", &rules_section_file);
}
