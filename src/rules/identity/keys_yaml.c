/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a keys file as YAML, event by event; see keys.h */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "rules/identity/keys_lines.h"
#include "rules/identity/keys_reader.h"
#include "rules/load/document.h"
#include "rules/load/problems.h"

#define RATES_TEXT_MAX 1024

struct reader {
    struct rules_keys_reader *into;
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

static int report(struct reader *reader, const yaml_mark_t *mark, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Adds a problem; reading goes on. Returns 0 or WEIR_ERR_MEMORY. */
static int report(struct reader *reader, const yaml_mark_t *mark, const char *format, ...)
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

static int next_event(struct reader *reader, yaml_event_t *event)
{
    if (yaml_parser_parse(&reader->parser, event))
        return 0;
    return rules_document_syntax(&reader->parser, reader->into->file, NULL, 0,
                                 reader->into->problems);
}

/* Reads over what `event` opened; deletes it. */
static int skip(struct reader *reader, yaml_event_t *event)
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

static int set_plan(struct reader *reader, struct entry *entry, const char *text, size_t size,
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
static int report_limit(struct reader *reader, const yaml_mark_t *mark, const char *text,
                        size_t size)
{
    const struct weir_rules *rules = reader->into->rules;
    struct rules_quote quote;
    if (reader->names == NULL) {
        reader->names = malloc((rules->rule_count + 1) * sizeof(*reader->names));
        if (reader->names == NULL)
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
static int read_rates(struct reader *reader, yaml_event_t *value, struct rates *rates)
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

/* Where the two parts of a field stand, for what is told of them later. */
struct marks {
    yaml_mark_t name, value;
};

/* One limit of the caller's; `name` is a scalar. */
static int set_limit(struct reader *reader, const yaml_event_t *name, const struct rates *rates,
                     const struct marks *marks)
{
    struct weir_reason reason = {{0}};
    const char *text = (const char *)name->data.scalar.value;
    size_t size = name->data.scalar.length;
    int rule = weir_rules_find(reader->into->rules, text, size);
    if (rule < 0)
        return report_limit(reader, &marks->name, text, size);
    if (!rates->good) {
        return report(reader, &marks->value,
                      "must be a rate, as in `5000/min burst 200`, or a list of them");
    }
    int err = rules_overrides_add(&reader->into->overrides, (uint32_t)rule,
                                  (struct weir_bytes){rates->text, rates->size}, &reason);
    if (err < 0 && err != WEIR_ERR_MEMORY) {
        int told = report(reader, &marks->value, "%s", reason.text);
        return told < 0 ? told : err == WEIR_ERR_FULL ? WEIR_ERR_RULES : 0;
    }
    return err;
}

/* The mapping of `limits`, after its start. */
static int read_limits(struct reader *reader)
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
static const char *const field_names[FIELDS] = {"user", "org", "plan", "limits"};
#define FIELDS_TEXT "user, org, plan, limits"

/* One of user, org, plan. */
static int set_text(struct reader *reader, struct entry *entry, enum field field,
                    const yaml_event_t *value)
{
    struct weir_bytes text = {(const char *)value->data.scalar.value, value->data.scalar.length};
    if (text.size == 0 || text.size > WEIR_IDENTITY_MAX) {
        return report(reader, &value->start_mark, "`%s` must have 1 to %d bytes",
                      field_names[field], WEIR_IDENTITY_MAX);
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
static int read_value(struct reader *reader, struct entry *entry, enum field field,
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
static int read_name(struct reader *reader, struct entry *entry, const yaml_event_t *name,
                     enum field *field)
{
    const char *text = (const char *)name->data.scalar.value;
    struct rules_quote quote;
    int which = FIELD_USER;
    while (which < FIELDS && strcmp(text, field_names[which]) != 0)
        which++;
    *field = FIELDS;
    if (which == FIELDS) {
        return report(reader, &name->start_mark, "unknown key %s; allowed are " FIELDS_TEXT,
                      rules_quote(&quote, text, name->data.scalar.length));
    }
    if ((entry->given >> which & 1) != 0)
        return report(reader, &name->start_mark, "`%s` is given twice", field_names[which]);
    entry->given |= 1U << which;
    *field = (enum field)which;
    return 0;
}

/* The mapping of one key, after its start. */
static int read_fields(struct reader *reader, struct entry *entry)
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
static int add_entry(struct reader *reader, struct entry *entry, const yaml_mark_t *mark)
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
        int told = report(reader, mark, "%s", reason.text);
        return told < 0 ? told : WEIR_ERR_RULES;
    }
    if (err == 0) {
        err = rules_keys_keep(reader->into->keys,
                              (struct weir_bytes){entry->user, entry->user_size}, &owner->user);
    }
    if (err == 0 && entry->org_size > 0) {
        err = rules_keys_org(reader->into, (struct weir_bytes){entry->org, entry->org_size},
                             &owner->org);
    }
    return err < 0 ? err : rules_keys_own(reader->into, owner, (uint32_t)mark->line + 1);
}

/* One entry: `name` is the event of its key, deleted here. */
static int read_entry(struct reader *reader, yaml_event_t *name)
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

static int read_entries(struct reader *reader)
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
static int read_stream(struct reader *reader)
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

int rules_keys_read_yaml(struct rules_keys_reader *into, FILE *file)
{
    struct reader reader = {.into = into};
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
