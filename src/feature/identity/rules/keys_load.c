/* SPDX-License-Identifier: Apache-2.0 */
/* see keys_load.h */
#include "feature/identity/rules/keys_load.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <yaml.h>

#include "base/file.h"
#include "feature/identity/rules/keys_lines.h"
#include "feature/identity/rules/keys_overrides.h"
#include "rules/compiled.h"
#include "rules/load/document.h"
#include "rules/problems.h"

/* What both readers fill. */
struct keys_reader {
    struct weir_rules *rules;
    struct rules_keys *keys;
    struct rules_string_map orgs; /* name -> where it stands */
    struct rules_keys_overrides overrides;
    uint32_t *lines; /* of each owner */
    uint32_t lines_room;
    const char *file;
    struct weir_problems *problems;
};

/* Keeps an org, which repeats, once; *at is where. Errors: WEIR_ERR_MEMORY. */
static int keep_org(struct keys_reader *reader, struct weir_bytes org, uint32_t *at)
{
    uint64_t hash = rules_text_hash(org.data, org.size);
    *at = rules_string_map_find(&reader->orgs, 0, hash, org.data, org.size);
    if (*at != RULES_NONE)
        return 0;
    int err = rules_keys_keep(reader->keys, org, at);
    if (err < 0)
        return err;
    struct weir_bytes kept = rules_keys_text(reader->keys, *at);
    return rules_string_map_add(&reader->orgs, 0, kept.data, kept.size, *at) ? 0 : WEIR_ERR_MEMORY;
}

/* Adds an owner whose digest is new. Errors: WEIR_ERR_MEMORY. */
static int add_owner(struct keys_reader *reader, const struct rules_key_owner *owner, uint32_t line)
{
    int64_t index = rules_keys_add(reader->keys, owner);
    if (index < 0)
        return WEIR_ERR_MEMORY;
    if (index >= reader->lines_room) {
        uint32_t room = reader->keys->room;
        uint32_t *lines = realloc(reader->lines, room * sizeof(*lines));
        if (!lines)
            return WEIR_ERR_MEMORY;
        reader->lines = lines;
        reader->lines_room = room;
    }
    reader->lines[index] = line;
    return 0;
}

/* --- Line by line ----------------------------------------------------------------------------- */

/* The set of a line's `limits`. Errors: WEIR_ERR_RULES (what is wrong is for the YAML parser to
 * tell), WEIR_ERR_MEMORY. */
static int read_line_limits(struct keys_reader *reader, struct weir_bytes limits, uint32_t *set)
{
    struct weir_bytes rest = limits, name, rates;
    struct weir_reason reason;
    *set = rules_overrides_known(&reader->overrides, limits);
    if (*set != RULES_NONE)
        return 0;
    int err = 0;
    rules_overrides_begin(&reader->overrides);
    while (err == 0 && rules_keys_lines_limit(&rest, &name, &rates)) {
        int rule = rules_rule_find(reader->rules, name);
        err = rule < 0 ? WEIR_ERR_RULES
                       : rules_overrides_add(&reader->overrides, (uint32_t)rule, rates, &reason);
    }
    if (err == 0)
        err = rules_overrides_end(&reader->overrides, set, &reason);
    if (err == 0)
        err = rules_overrides_learn(&reader->overrides, limits, *set);
    return err == 0 || err == WEIR_ERR_MEMORY ? err : WEIR_ERR_RULES;
}

/* Errors: as read_line_limits. */
static int add_line(struct keys_reader *reader, const struct rules_keys_line *line, uint32_t number)
{
    struct rules_key_owner owner = {.org = RULES_NONE, .plan = RULES_NONE};
    memcpy(owner.digest, line->digest, WEIR_DIGEST_BYTES);
    if (line->plan.data) {
        owner.plan = rules_plan_find(reader->rules, line->plan);
        if (owner.plan == RULES_NONE)
            return WEIR_ERR_RULES;
    }
    if (rules_keys_index(reader->keys, owner.digest) != RULES_NONE)
        return WEIR_ERR_RULES;
    int err = line->limits.data ? read_line_limits(reader, line->limits, &owner.set) : 0;
    if (err == 0)
        err = rules_keys_keep(reader->keys, line->user, &owner.user);
    if (err == 0 && line->org.data)
        err = keep_org(reader, line->org, &owner.org);
    return err < 0 ? err : add_owner(reader, &owner, number);
}

/* Errors: WEIR_ERR_RULES (the file has another shape, or a problem), WEIR_ERR_MEMORY. */
static int read_lines(struct keys_reader *reader, FILE *file)
{
    struct rules_keys_lines lines = {.file = file};
    struct rules_keys_line line;
    enum rules_keys_line_kind kind;
    if (fseek(file, 0, SEEK_SET) < 0)
        return WEIR_ERR_RULES;
    while ((kind = rules_keys_lines_next(&lines, &line)) == RULES_KEYS_LINE_CALLER) {
        int err = add_line(reader, &line, lines.number);
        if (err < 0)
            return err;
    }
    return kind == RULES_KEYS_LINE_END ? 0 : WEIR_ERR_RULES;
}

/* --- As YAML, event by event ------------------------------------------------------------------ */

#define RATES_TEXT_MAX 1024

struct yaml_reader {
    struct keys_reader *into;
    yaml_parser_t parser;
    const char **names; /* of all limits, once one is mistaken */
    bool wrong;         /* a problem was added */
};

/* An entry, while it is read. */
struct entry {
    struct rules_key_owner owner;
    uint32_t given; /* of enum field, bits */
    size_t user_size, org_size;
    char user[WEIR_IDENTITY_MAX], org[WEIR_IDENTITY_MAX];
};

static int report(struct yaml_reader *reader, const yaml_mark_t *mark, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Adds a problem; the caller reads on. Returns 0 or WEIR_ERR_MEMORY. */
static int report(struct yaml_reader *reader, const yaml_mark_t *mark, const char *format, ...)
{
    char message[512];
    va_list values;
    va_start(values, format);
    vsnprintf(message, sizeof(message), format, values);
    va_end(values);
    reader->wrong = true;
    return rules_problem_add(reader->into->problems, reader->into->file, (uint32_t)mark->line + 1,
                             (uint32_t)mark->column + 1, message)
               ? 0
               : WEIR_ERR_MEMORY;
}

static int next_event(struct yaml_reader *reader, yaml_event_t *event)
{
    if (yaml_parser_parse(&reader->parser, event))
        return 0;
    return rules_document_syntax(&reader->parser, reader->into->file, NULL, 0,
                                 reader->into->problems);
}

/* Reads over what `event` opened; deletes it. */
static int skip(struct yaml_reader *reader, yaml_event_t *event)
{
    uint64_t depth = 0;
    for (;;) {
        yaml_event_type_t type = event->type;
        yaml_event_delete(event);
        depth += type == YAML_SEQUENCE_START_EVENT || type == YAML_MAPPING_START_EVENT;
        depth -= type == YAML_SEQUENCE_END_EVENT || type == YAML_MAPPING_END_EVENT;
        if (depth == 0)
            return 0;
        int err = next_event(reader, event);
        if (err < 0)
            return err;
    }
}

static int set_plan(struct yaml_reader *reader, struct entry *entry, const char *text, size_t size,
                    const yaml_mark_t *mark)
{
    const struct weir_rules *rules = reader->into->rules;
    entry->owner.plan = rules_plan_find(rules, (struct weir_bytes){text, size});
    if (entry->owner.plan != RULES_NONE)
        return 0;
    struct rules_quote quote;
    struct rules_hint room;
    const char *hint = rules_hint(&room, text, size, rules->plan_names, rules->plan_count);
    return report(reader, mark, "plan %s is not in `plans`%s", rules_quote(&quote, text, size),
                  hint);
}

/* --- `limits` of an entry --------------------------------------------------------------------- */

/* Tells that no limit has this name, and which one has one like it. */
static int report_limit(struct yaml_reader *reader, const yaml_mark_t *mark, const char *text,
                        size_t size)
{
    const struct weir_rules *rules = reader->into->rules;
    struct rules_quote quote;
    if (!reader->names) {
        reader->names = malloc((rules->rule_count + 1) * sizeof(*reader->names));
        if (!reader->names)
            return WEIR_ERR_MEMORY;
        for (uint32_t i = 0; i < rules->rule_count; i++)
            reader->names[i] = rules->rules[i].name;
    }
    struct rules_hint room;
    const char *hint = rules_hint(&room, text, size, reader->names, rules->rule_count);
    return report(reader, mark, "no limit is called %s%s", rules_quote(&quote, text, size), hint);
}

/* The rates of a limit: a text, or a list of them, which becomes one. */
struct rates {
    char text[RATES_TEXT_MAX];
    size_t size;
    bool good;
};

static void put_rate(struct rates *rates, const yaml_event_t *value)
{
    size_t size = value->data.scalar.length, comma = rates->size > 0 ? 2 : 0;
    rates->good = rates->good && size > 0 && size < RATES_TEXT_MAX - 2 - rates->size;
    if (rates->good) {
        memcpy(rates->text + rates->size, ", ", comma);
        memcpy(rates->text + rates->size + comma, value->data.scalar.value, size);
        rates->size += comma + size;
    }
}

/* Reads over `value` and what it opens. */
static int read_rates(struct yaml_reader *reader, yaml_event_t *value, struct rates *rates)
{
    bool list = value->type == YAML_SEQUENCE_START_EVENT;
    rates->size = 0;
    rates->good = list || value->type == YAML_SCALAR_EVENT;
    if (!list) {
        if (rates->good)
            put_rate(rates, value);
        return skip(reader, value);
    }
    yaml_event_delete(value);
    for (;;) {
        yaml_event_t item;
        int err = next_event(reader, &item);
        if (err < 0)
            return err;
        if (item.type == YAML_SEQUENCE_END_EVENT) {
            yaml_event_delete(&item);
            rates->good = rates->good && rates->size > 0;
            return 0;
        }
        if (item.type == YAML_SCALAR_EVENT)
            put_rate(rates, &item);
        else
            rates->good = false;
        err = skip(reader, &item);
        if (err < 0)
            return err;
    }
}

/* Where the two parts of a field stand, for later messages. */
struct marks {
    yaml_mark_t name, value;
};

/* One limit of the caller's; `name` is a scalar. */
static int set_limit(struct yaml_reader *reader, const yaml_event_t *name,
                     const struct rates *rates, const struct marks *marks)
{
    struct weir_reason reason = {{0}};
    const char *text = (const char *)name->data.scalar.value;
    size_t size = name->data.scalar.length;
    int rule = rules_rule_find(reader->into->rules, (struct weir_bytes){text, size});
    if (rule < 0)
        return report_limit(reader, &marks->name, text, size);
    if (!rates->good) {
        return report(reader, &marks->value,
                      "must be a rate, as in `5000/min burst 200`, or a list of them");
    }
    int err = rules_overrides_add(&reader->into->overrides, (uint32_t)rule,
                                  (struct weir_bytes){rates->text, rates->size}, &reason);
    if (err < 0 && err != WEIR_ERR_MEMORY) {
        int reported = report(reader, &marks->value, "%s", reason.text);
        return reported < 0 ? reported : err == WEIR_ERR_FULL ? WEIR_ERR_RULES : 0;
    }
    return err;
}

/* The mapping of `limits`, after its start. */
static int read_limits(struct yaml_reader *reader)
{
    struct rates rates;
    for (;;) {
        yaml_event_t name, value;
        int err = next_event(reader, &name);
        if (err < 0)
            return err;
        if (name.type == YAML_MAPPING_END_EVENT) {
            yaml_event_delete(&name);
            return 0;
        }
        bool word = name.type == YAML_SCALAR_EVENT;
        struct marks marks = {.name = name.start_mark};
        if (!word) {
            err = report(reader, &marks.name, "a key must be a word");
            err = err < 0 ? err : skip(reader, &name);
            memset(&name, 0, sizeof(name));
        }
        err = err < 0 ? err : next_event(reader, &value);
        if (err == 0) {
            marks.value = value.start_mark;
            err = read_rates(reader, &value, &rates);
        }
        if (err == 0 && word)
            err = set_limit(reader, &name, &rates, &marks);
        yaml_event_delete(&name);
        if (err < 0)
            return err;
    }
}

/* --- Entries ---------------------------------------------------------------------------------- */

enum field { FIELD_USER, FIELD_ORG, FIELD_PLAN, FIELD_LIMITS, FIELDS };
#define FIELDS_TEXT "user, org, plan, limits"

static const struct rules_keyword any_override = {NULL, RULES_TEXT, .many = RULES_SEVERAL,
                                                  .doc = "the caller's own rate of this limit"};
static const struct rules_section overrides_section = {.what = "limits", .others = &any_override};

static const struct rules_keyword entry_keywords[FIELDS] = {
    [FIELD_USER] = {"user", RULES_TEXT, .flags = RULES_REQUIRED, .doc = "who the caller is"},
    [FIELD_ORG] = {"org", RULES_TEXT, .absent = "none", .doc = "the caller's organisation"},
    [FIELD_PLAN] = {"plan", RULES_TEXT, .absent = "the file's `default_plan`",
                    .doc = "one of `plans`"},
    [FIELD_LIMITS] = {"limits", RULES_MAPPING, .section = &overrides_section, .absent = "none",
                      .doc = "the caller's own rates, which replace the rates of these limits for "
                             "this caller, whatever their plan"},
};
static const struct rules_section entry_section = RULES_SECTION("an entry", entry_keywords);
static const struct rules_keyword any_entry = {NULL, RULES_MAPPING, .section = &entry_section,
                                               .doc = "whose API key it is that has this SHA-256"};
const struct rules_section rules_section_keys = {
    .what = "a keys file", .others = &any_entry, .other_keys = "^[0-9A-Fa-f]{64}$"};

/* One of user, org, plan. */
static int set_text(struct yaml_reader *reader, struct entry *entry, enum field field,
                    const yaml_event_t *value)
{
    struct weir_bytes text = {(const char *)value->data.scalar.value, value->data.scalar.length};
    if (text.size == 0 || text.size > WEIR_IDENTITY_MAX) {
        return report(reader, &value->start_mark, "`%s` must have 1 to %d bytes",
                      entry_keywords[field].name, WEIR_IDENTITY_MAX);
    }
    if (field == FIELD_PLAN)
        return set_plan(reader, entry, text.data, text.size, &value->start_mark);
    if (field == FIELD_ORG) {
        memcpy(entry->org, text.data, text.size);
        entry->org_size = text.size;
    } else {
        memcpy(entry->user, text.data, text.size);
        entry->user_size = text.size;
    }
    return 0;
}

/* The value of a field, which is read over. */
static int read_value(struct yaml_reader *reader, struct entry *entry, enum field field,
                      yaml_event_t *value)
{
    yaml_mark_t mark = value->start_mark;
    if (field == FIELD_LIMITS && value->type == YAML_MAPPING_START_EVENT) {
        yaml_event_delete(value);
        return read_limits(reader);
    }
    int err = 0;
    if (field == FIELD_LIMITS) {
        err = report(reader, &mark, "`limits` must be a mapping of limits to rates");
    } else if (field < FIELDS) {
        err = value->type == YAML_SCALAR_EVENT ? set_text(reader, entry, field, value)
                                               : report(reader, &mark, "must be a text");
    }
    if (err < 0) {
        yaml_event_delete(value);
        return err;
    }
    return skip(reader, value);
}

/* Which field a name is; FIELDS after a problem. */
static int read_name(struct yaml_reader *reader, struct entry *entry, const yaml_event_t *name,
                     enum field *field)
{
    const char *text = (const char *)name->data.scalar.value;
    struct rules_quote quote;
    int which = FIELD_USER;
    while (which < FIELDS && strcmp(text, entry_keywords[which].name) != 0)
        which++;
    *field = FIELDS;
    if (which == FIELDS) {
        return report(reader, &name->start_mark, "unknown key %s; allowed are " FIELDS_TEXT,
                      rules_quote(&quote, text, name->data.scalar.length));
    }
    if ((entry->given >> which & 1) != 0)
        return report(reader, &name->start_mark, "`%s` is given twice", entry_keywords[which].name);
    entry->given |= 1U << which;
    *field = (enum field)which;
    return 0;
}

/* The mapping of one key, after its start. */
static int read_fields(struct yaml_reader *reader, struct entry *entry)
{
    for (;;) {
        yaml_event_t name, value;
        enum field field = FIELDS;
        int err = next_event(reader, &name);
        if (err < 0)
            return err;
        if (name.type == YAML_MAPPING_END_EVENT) {
            yaml_event_delete(&name);
            return 0;
        }
        if (name.type == YAML_SCALAR_EVENT) {
            err = read_name(reader, entry, &name, &field);
            yaml_event_delete(&name);
        } else {
            err = report(reader, &name.start_mark, "a key must be a word");
            err = err < 0 ? err : skip(reader, &name);
        }
        err = err < 0 ? err : next_event(reader, &value);
        err = err < 0 ? err : read_value(reader, entry, field, &value);
        if (err < 0)
            return err;
    }
}

/* Adds an entry read in whole; `mark` is where its digest stands. */
static int add_entry(struct yaml_reader *reader, struct entry *entry, const yaml_mark_t *mark)
{
    struct rules_key_owner *owner = &entry->owner;
    struct weir_reason reason = {{0}};
    uint32_t other = rules_keys_index(reader->into->keys, owner->digest);
    if (other != RULES_NONE) {
        return report(reader, mark, "this SHA-256 is given twice; first in line %u",
                      reader->into->lines[other]);
    }
    int err = rules_overrides_end(&reader->into->overrides, &owner->set, &reason);
    if (err == WEIR_ERR_FULL) {
        int reported = report(reader, mark, "%s", reason.text);
        return reported < 0 ? reported : WEIR_ERR_RULES;
    }
    if (err == 0) {
        err = rules_keys_keep(reader->into->keys,
                              (struct weir_bytes){entry->user, entry->user_size}, &owner->user);
    }
    if (err == 0 && entry->org_size > 0)
        err = keep_org(reader->into, (struct weir_bytes){entry->org, entry->org_size}, &owner->org);
    return err < 0 ? err : add_owner(reader->into, owner, (uint32_t)mark->line + 1);
}

/* One entry: `name` is the event of its key, deleted here. */
static int read_entry(struct yaml_reader *reader, yaml_event_t *name)
{
    struct entry entry;
    entry.owner = (struct rules_key_owner){.org = RULES_NONE, .plan = RULES_NONE};
    entry.user_size = entry.org_size = 0;
    entry.given = 0;
    rules_overrides_begin(&reader->into->overrides);
    yaml_mark_t mark = name->start_mark;
    bool valid = name->type == YAML_SCALAR_EVENT &&
                 rules_digest_read(entry.owner.digest, (const char *)name->data.scalar.value,
                                   name->data.scalar.length);
    int err = 0;
    if (!valid) {
        /* Not quoted: it may be the key itself. */
        err = report(reader, &mark, "not a SHA-256 (64 hexadecimal digits) of an API key");
    }
    err = err < 0 ? err : skip(reader, name);
    yaml_event_t value;
    err = err < 0 ? err : next_event(reader, &value);
    if (err < 0)
        return err;
    if (value.type != YAML_MAPPING_START_EVENT) {
        err = report(reader, &value.start_mark, "must be a mapping of " FIELDS_TEXT);
        return err < 0 ? err : skip(reader, &value);
    }
    yaml_event_delete(&value);
    uint32_t problems = reader->into->problems->count + reader->into->problems->dropped;
    err = read_fields(reader, &entry);
    if (err < 0 || reader->into->problems->count + reader->into->problems->dropped != problems)
        return err;
    if (entry.user_size == 0)
        return report(reader, &mark, "`user` is missing");
    return valid ? add_entry(reader, &entry, &mark) : 0;
}

static int read_entries(struct yaml_reader *reader)
{
    for (;;) {
        yaml_event_t event;
        int err = next_event(reader, &event);
        if (err < 0)
            return err;
        if (event.type == YAML_MAPPING_END_EVENT) {
            yaml_event_delete(&event);
            return 0;
        }
        err = read_entry(reader, &event);
        if (err < 0)
            return err;
    }
}

/* The stream: nothing, or one document with one mapping. */
static int read_stream(struct yaml_reader *reader)
{
    bool seen = false;
    for (;;) {
        yaml_event_t event;
        int err = next_event(reader, &event);
        if (err < 0)
            return err;
        yaml_event_type_t type = event.type;
        yaml_mark_t mark = event.start_mark;
        bool empty = type == YAML_SCALAR_EVENT && event.data.scalar.length == 0;
        yaml_event_delete(&event);
        if (type == YAML_STREAM_END_EVENT)
            return 0;
        if (type == YAML_MAPPING_START_EVENT && !seen) {
            seen = true;
            err = read_entries(reader);
        } else if (type != YAML_STREAM_START_EVENT && type != YAML_DOCUMENT_START_EVENT &&
                   type != YAML_DOCUMENT_END_EVENT && !empty) {
            err = report(reader, &mark,
                         "a keys file is one mapping of SHA-256 to { user, org, plan, limits }");
            return err < 0 ? err : WEIR_ERR_RULES;
        }
        if (err < 0)
            return err;
    }
}

static int read_yaml(struct keys_reader *into, FILE *file)
{
    struct yaml_reader reader = {.into = into};
    int err = WEIR_ERR_MEMORY;
    rewind(file);
    if (yaml_parser_initialize(&reader.parser)) {
        yaml_parser_set_input_file(&reader.parser, file);
        err = read_stream(&reader);
        yaml_parser_delete(&reader.parser);
    }
    free(reader.names);
    return err == 0 && reader.wrong ? WEIR_ERR_RULES : err;
}

/* --- The whole file --------------------------------------------------------------------------- */

static void reader_open(struct keys_reader *reader, bool compile)
{
    reader->overrides.rules = reader->rules;
    reader->overrides.keys = reader->keys;
    reader->overrides.compile = compile;
}

/* Gives back what only reading needs. */
static void reader_close(struct keys_reader *reader)
{
    rules_string_map_free(&reader->orgs);
    rules_overrides_free(&reader->overrides);
    memset(&reader->overrides, 0, sizeof(reader->overrides));
    free(reader->lines);
    reader->lines = NULL;
    reader->lines_room = 0;
}

int rules_keys_load(struct weir_rules *rules, const char *path, bool compile,
                    struct weir_problems *problems, struct weir_reason *reason)
{
    struct keys_reader reader = {
        .rules = rules, .keys = &rules->keys, .file = path, .problems = problems};
    int descriptor = weir_file_open(path, reason);
    if (descriptor < 0)
        return descriptor;
    FILE *file = fdopen(descriptor, "rb");
    if (!file) {
        close(descriptor);
        return WEIR_ERR_MEMORY;
    }
    reader_open(&reader, compile);
    int err = read_lines(&reader, file);
    if (err == WEIR_ERR_RULES) {
        reader_close(&reader); /* of lines that turned out to be others */
        rules_keys_free(reader.keys);
        reader_open(&reader, compile);
        err = read_yaml(&reader, file);
    }
    fclose(file);
    reader_close(&reader);
    return err < 0 ? err : rules_keys_finish(reader.keys);
}
