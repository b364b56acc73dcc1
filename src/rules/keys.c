/* see keys.h
 *
 * SHA-256 is called through OpenSSL's older interface: the newer one (EVP) allocates on every call,
 * and this runs on the path of a request. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "rules/keys.h"

#include <errno.h>
#include <openssl/sha.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "rules/document.h"
#include "rules/keys_lines.h"
#include "rules/problems.h"

struct reader {
    yaml_parser_t parser;
    struct rules_keys *keys;
    struct rules_arena *arena;
    struct rules_words orgs; /* name -> caller that has it first */
    char org[WEIR_IDENTITY_MAX];
    const char *file;
    const struct rules_words *plans;
    const char *const *plan_names;
    uint32_t plan_count;
    struct weir_problems *problems;
    bool wrong; /* a problem was added */
};

void rules_sha256(struct weir_bytes data, uint8_t digest[WEIR_DIGEST_BYTES])
{
    SHA256_CTX context;
    SHA256_Init(&context);
    SHA256_Update(&context, data.data, data.size);
    SHA256_Final(digest, &context);
}

static uint32_t digest_slot(const uint8_t *digest, uint32_t mask)
{
    uint32_t slot;
    memcpy(&slot, digest, sizeof(slot));
    return slot & mask;
}

/* The slot of a digest, or the free one where it would go. */
static uint32_t find_slot(const struct rules_keys *keys, const uint8_t *digest)
{
    uint32_t at = digest_slot(digest, keys->mask);
    while (keys->slots[at] != RULES_NONE &&
           memcmp(keys->callers[keys->slots[at]].digest, digest, WEIR_DIGEST_BYTES) != 0) {
        at = (at + 1) & keys->mask;
    }
    return at;
}

bool rules_keys_find(const struct rules_keys *keys, const uint8_t digest[WEIR_DIGEST_BYTES],
                     struct weir_caller *caller, uint32_t *plan)
{
    uint32_t index = keys->count == 0 ? RULES_NONE : keys->slots[find_slot(keys, digest)];
    if (index == RULES_NONE) {
        return false;
    }
    const struct rules_caller *found = &keys->callers[index];
    *caller = (struct weir_caller){.user = {found->user, found->user_size},
                                   .org = {found->org, found->org_size}};
    *plan = found->plan;
    return true;
}

#define CALLERS_FIRST 16

/* Makes room for one more caller; slots are twice the room of callers. */
static int keys_grow(struct rules_keys *keys)
{
    if (keys->count < keys->room) {
        return 0;
    }
    uint32_t room = keys->room == 0 ? CALLERS_FIRST : keys->room * 2;
    if (room > UINT32_MAX / 8) {
        return WEIR_ERR_MEMORY;
    }
    struct rules_caller *callers = realloc(keys->callers, room * sizeof(*callers));
    if (callers == NULL) {
        return WEIR_ERR_MEMORY;
    }
    keys->callers = callers;
    keys->room = room;
    uint32_t *slots = malloc((size_t)room * 2 * sizeof(uint32_t));
    if (slots == NULL) {
        return WEIR_ERR_MEMORY;
    }
    memset(slots, 0xFF, (size_t)room * 2 * sizeof(uint32_t));
    free(keys->slots);
    keys->slots = slots;
    keys->mask = room * 2 - 1;
    for (uint32_t i = 0; i < keys->count; i++) {
        keys->slots[find_slot(keys, callers[i].digest)] = i;
    }
    return 0;
}

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
    return rules_problem_add(reader->problems, reader->file, (uint32_t)mark->line + 1,
                             (uint32_t)mark->column + 1, message)
               ? 0
               : WEIR_ERR_MEMORY;
}

static int next_event(struct reader *reader, yaml_event_t *event)
{
    if (yaml_parser_parse(&reader->parser, event)) {
        return 0;
    }
    return rules_document_syntax(&reader->parser, reader->file, NULL, 0, reader->problems);
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
        if (depth == 0) {
            return 0;
        }
        int err = next_event(reader, event);
        if (err < 0) {
            return err;
        }
    }
}

static int set_plan(struct reader *reader, struct rules_caller *caller, const char *text,
                    size_t size, const yaml_mark_t *mark)
{
    caller->plan = rules_words_find(reader->plans, 0, rules_text_hash(text, size), text, size);
    if (caller->plan != RULES_NONE) {
        return 0;
    }
    struct rules_quote quote;
    const char *nearest = rules_nearest(text, size, reader->plan_names, reader->plan_count);
    return report(reader, mark, "plan %s is not in `plans`%s%s%s", rules_quote(&quote, text, size),
                  nearest != NULL ? "; did you mean `" : "", nearest != NULL ? nearest : "",
                  nearest != NULL ? "`?" : "");
}

/* Orgs repeat: each is kept once, found by the caller that had it first. */
static int intern_org(struct reader *reader, struct rules_caller *caller)
{
    const char *text = reader->org;
    uint64_t hash = rules_text_hash(text, caller->org_size);
    uint32_t first = rules_words_find(&reader->orgs, 0, hash, text, caller->org_size);
    if (first != RULES_NONE) {
        caller->org = reader->keys->callers[first].org;
        return 0;
    }
    caller->org = rules_arena_copy(reader->arena, text, caller->org_size);
    bool kept = caller->org != NULL && rules_words_add(&reader->orgs, 0, caller->org,
                                                       caller->org_size, reader->keys->count);
    return kept ? 0 : WEIR_ERR_MEMORY;
}

/* One of user, org, plan; `name` and `value` are scalars. */
static int set_field(struct reader *reader, struct rules_caller *caller, const yaml_event_t *name,
                     const yaml_event_t *value)
{
    static const char *const names[] = {"user", "org", "plan"};
    const char *field = (const char *)name->data.scalar.value;
    const char *text = (const char *)value->data.scalar.value;
    size_t size = value->data.scalar.length;
    struct rules_quote quote;
    int which = 0;
    while (which < 3 && strcmp(field, names[which]) != 0) {
        which++;
    }
    if (which == 3) {
        return report(reader, &name->start_mark, "unknown key %s; allowed are user, org, plan",
                      rules_quote(&quote, field, name->data.scalar.length));
    }
    bool again = which == 0   ? caller->user != NULL
                 : which == 1 ? caller->org_size > 0
                              : caller->plan != RULES_NONE;
    if (again) {
        return report(reader, &name->start_mark, "`%s` is given twice", names[which]);
    }
    if (size == 0 || size > WEIR_IDENTITY_MAX) {
        return report(reader, &value->start_mark, "`%s` must have 1 to %d bytes", names[which],
                      WEIR_IDENTITY_MAX);
    }
    if (which == 2) {
        return set_plan(reader, caller, text, size, &value->start_mark);
    }
    if (which == 1) {
        memcpy(reader->org, text, size);
        caller->org_size = (uint16_t)size;
        return 0;
    }
    caller->user = rules_arena_copy(reader->arena, text, size);
    caller->user_size = (uint16_t)size;
    return caller->user == NULL ? WEIR_ERR_MEMORY : 0;
}

/* The mapping of one key, after its start. */
static int read_fields(struct reader *reader, struct rules_caller *caller)
{
    for (;;) {
        yaml_event_t name, value;
        int err = next_event(reader, &name);
        if (err < 0) {
            return err;
        }
        if (name.type == YAML_MAPPING_END_EVENT) {
            yaml_event_delete(&name);
            return 0;
        }
        if (name.type != YAML_SCALAR_EVENT) {
            err = report(reader, &name.start_mark, "a key must be a word");
            err = err < 0 ? err : skip(reader, &name);
            memset(&name, 0, sizeof(name));
        }
        err = err < 0 ? err : next_event(reader, &value);
        if (err < 0) {
            yaml_event_delete(&name);
            return err;
        }
        if (name.type == YAML_SCALAR_EVENT && value.type == YAML_SCALAR_EVENT) {
            err = set_field(reader, caller, &name, &value);
        } else if (value.type != YAML_SCALAR_EVENT) {
            err = report(reader, &value.start_mark, "must be a text");
        }
        yaml_event_delete(&name);
        err = err < 0 ? err : skip(reader, &value);
        if (err < 0) {
            return err;
        }
    }
}

/* Adds a caller read in whole; `mark` is where its digest stands. */
static int add_caller(struct reader *reader, struct rules_caller *caller, const yaml_mark_t *mark)
{
    struct rules_keys *keys = reader->keys;
    int err = keys_grow(keys);
    if (err < 0) {
        return err;
    }
    uint32_t slot = find_slot(keys, caller->digest);
    if (keys->slots[slot] != RULES_NONE) {
        return report(reader, mark, "this SHA-256 is given twice; first in line %u",
                      keys->callers[keys->slots[slot]].line);
    }
    err = caller->org_size > 0 ? intern_org(reader, caller) : 0;
    if (err < 0) {
        return err;
    }
    keys->slots[slot] = keys->count;
    keys->callers[keys->count++] = *caller;
    return 0;
}

/* One entry: `name` is the event of its key, deleted here. */
static int read_entry(struct reader *reader, yaml_event_t *name)
{
    struct rules_caller caller = {.plan = RULES_NONE};
    yaml_mark_t mark = name->start_mark;
    caller.line = (uint32_t)mark.line + 1;
    bool valid = name->type == YAML_SCALAR_EVENT &&
                 rules_digest_read(caller.digest, (const char *)name->data.scalar.value,
                                   name->data.scalar.length);
    int err = 0;
    if (!valid) {
        /* Not quoted: it may be the key itself. */
        err = report(reader, &mark, "not a SHA-256 (64 hexadecimal digits) of an API key");
    }
    err = err < 0 ? err : skip(reader, name);
    yaml_event_t value;
    err = err < 0 ? err : next_event(reader, &value);
    if (err < 0) {
        return err;
    }
    if (value.type != YAML_MAPPING_START_EVENT) {
        err = report(reader, &value.start_mark, "must be a mapping of user, org, plan");
        return err < 0 ? err : skip(reader, &value);
    }
    yaml_event_delete(&value);
    uint32_t problems = reader->problems->count + reader->problems->dropped;
    err = read_fields(reader, &caller);
    if (err < 0 || reader->problems->count + reader->problems->dropped != problems) {
        return err;
    }
    if (caller.user == NULL) {
        return report(reader, &mark, "`user` is missing");
    }
    return valid ? add_caller(reader, &caller, &mark) : 0;
}

static int read_entries(struct reader *reader)
{
    for (;;) {
        yaml_event_t event;
        int err = next_event(reader, &event);
        if (err < 0) {
            return err;
        }
        if (event.type == YAML_MAPPING_END_EVENT) {
            yaml_event_delete(&event);
            return 0;
        }
        err = read_entry(reader, &event);
        if (err < 0) {
            return err;
        }
    }
}

/* The stream: nothing, or one document with one mapping. */
static int read_stream(struct reader *reader)
{
    bool seen = false;
    for (;;) {
        yaml_event_t event;
        int err = next_event(reader, &event);
        if (err < 0) {
            return err;
        }
        yaml_event_type_t type = event.type;
        yaml_mark_t mark = event.start_mark;
        bool empty = type == YAML_SCALAR_EVENT && event.data.scalar.length == 0;
        yaml_event_delete(&event);
        if (type == YAML_STREAM_END_EVENT) {
            return 0;
        }
        if (type == YAML_MAPPING_START_EVENT && !seen) {
            seen = true;
            err = read_entries(reader);
        } else if (type != YAML_STREAM_START_EVENT && type != YAML_DOCUMENT_START_EVENT &&
                   type != YAML_DOCUMENT_END_EVENT && !empty) {
            err = report(reader, &mark,
                         "a keys file is one mapping of SHA-256 to { user, org, plan }");
            return err < 0 ? err : WEIR_ERR_RULES;
        }
        if (err < 0) {
            return err;
        }
    }
}

/* --- The same, line by line: see keys_lines.h ---------------------------------------------------
 */

/* Errors: WEIR_ERR_RULES (what is wrong is for the YAML parser to tell), WEIR_ERR_MEMORY. */
static int add_line(struct reader *reader, const struct rules_keys_line *line, uint32_t number)
{
    struct rules_caller caller = {.plan = RULES_NONE, .line = number};
    struct rules_keys *keys = reader->keys;
    struct weir_bytes plan = line->plan;
    memcpy(caller.digest, line->digest, WEIR_DIGEST_BYTES);
    if (plan.data != NULL) {
        caller.plan = rules_words_find(reader->plans, 0, rules_text_hash(plan.data, plan.size),
                                       plan.data, plan.size);
    }
    bool known = plan.data == NULL || caller.plan != RULES_NONE;
    int err = keys_grow(keys);
    if (err < 0 || !known || keys->slots[find_slot(keys, caller.digest)] != RULES_NONE) {
        return err < 0 ? err : WEIR_ERR_RULES;
    }
    caller.user = rules_arena_copy(reader->arena, line->user.data, line->user.size);
    caller.user_size = (uint16_t)line->user.size;
    caller.org_size = (uint16_t)line->org.size;
    if (line->org.data != NULL) {
        memcpy(reader->org, line->org.data, line->org.size);
    }
    yaml_mark_t mark = {0};
    return caller.user == NULL ? WEIR_ERR_MEMORY : add_caller(reader, &caller, &mark);
}

/* Goes through all lines; with `reader` NULL, only to see what they are. */
static int read_lines(struct reader *reader, FILE *file)
{
    struct rules_keys_lines lines = {.file = file};
    struct rules_keys_line line;
    enum rules_keys_line_kind kind;
    if (fseek(file, 0, SEEK_SET) < 0) {
        return WEIR_ERR_RULES; /* a pipe is read once */
    }
    while ((kind = rules_keys_lines_next(&lines, &line)) == RULES_KEYS_LINE_CALLER) {
        int err = reader != NULL ? add_line(reader, &line, lines.number) : 0;
        if (err < 0) {
            return err;
        }
    }
    return kind == RULES_KEYS_LINE_END ? 0 : WEIR_ERR_RULES;
}

static int read_yaml(struct reader *reader, FILE *file)
{
    int err = WEIR_ERR_MEMORY;
    rewind(file);
    rules_keys_free(reader->keys); /* of lines that turned out wrong */
    rules_words_free(&reader->orgs);
    if (yaml_parser_initialize(&reader->parser)) {
        yaml_parser_set_input_file(&reader->parser, file);
        err = read_stream(reader);
        yaml_parser_delete(&reader->parser);
    }
    return err == 0 && reader->wrong ? WEIR_ERR_RULES : err;
}

int rules_keys_load(struct rules_keys *keys, struct rules_arena *arena, const char *path,
                    const struct rules_words *plans, const char *const *plan_names,
                    uint32_t plan_count, struct weir_problems *problems)
{
    struct reader reader = {.keys = keys,
                            .arena = arena,
                            .file = path,
                            .plans = plans,
                            .plan_names = plan_names,
                            .plan_count = plan_count,
                            .problems = problems};
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        return errno == ENOMEM ? WEIR_ERR_MEMORY : WEIR_ERR_IO;
    }
    /* A pass to see, so that a file of another shape leaves no texts of its first lines behind. */
    int err = read_lines(NULL, file);
    err = err < 0 ? err : read_lines(&reader, file);
    if (err == WEIR_ERR_RULES) {
        err = read_yaml(&reader, file);
    }
    fclose(file);
    rules_words_free(&reader.orgs);
    return err;
}

void rules_keys_free(struct rules_keys *keys)
{
    free(keys->callers);
    free(keys->slots);
    memset(keys, 0, sizeof(*keys));
}
