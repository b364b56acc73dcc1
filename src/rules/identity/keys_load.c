/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a keys file line by line, or, where it has other lines, as YAML; see keys.h. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rules/identity/keys_lines.h"
#include "rules/identity/keys_reader.h"
#include "rules/load/file.h"

int rules_keys_org(struct rules_keys_reader *reader, struct weir_bytes org, uint32_t *at)
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

int rules_keys_own(struct rules_keys_reader *reader, const struct rules_key_owner *owner,
                   uint32_t line)
{
    int64_t index = rules_keys_add(reader->keys, owner);
    if (index < 0)
        return WEIR_ERR_MEMORY;
    if (index >= reader->lines_room) {
        uint32_t room = reader->keys->room;
        uint32_t *lines = realloc(reader->lines, room * sizeof(*lines));
        if (lines == NULL)
            return WEIR_ERR_MEMORY;
        reader->lines = lines;
        reader->lines_room = room;
    }
    reader->lines[index] = line;
    return 0;
}

/* The set of a line's `limits`. Errors: WEIR_ERR_RULES (what is wrong is for the YAML parser to
 * tell), WEIR_ERR_MEMORY. */
static int read_line_limits(struct rules_keys_reader *reader, struct weir_bytes limits,
                            uint32_t *set)
{
    struct weir_bytes rest = limits, name, rates;
    struct weir_reason reason;
    *set = rules_overrides_known(&reader->overrides, limits);
    if (*set != RULES_NONE)
        return 0;
    int err = 0;
    rules_overrides_begin(&reader->overrides);
    while (err == 0 && rules_keys_lines_limit(&rest, &name, &rates)) {
        int rule = weir_rules_find(reader->rules, name.data, name.size);
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
static int add_line(struct rules_keys_reader *reader, const struct rules_keys_line *line,
                    uint32_t number)
{
    struct rules_key_owner owner = {.org = RULES_NONE, .plan = RULES_NONE};
    memcpy(owner.digest, line->digest, WEIR_DIGEST_BYTES);
    if (line->plan.data != NULL) {
        owner.plan = rules_plan_find(reader->rules, line->plan);
        if (owner.plan == RULES_NONE)
            return WEIR_ERR_RULES;
    }
    if (rules_keys_index(reader->keys, owner.digest) != RULES_NONE)
        return WEIR_ERR_RULES;
    int err = line->limits.data != NULL ? read_line_limits(reader, line->limits, &owner.set) : 0;
    if (err == 0)
        err = rules_keys_keep(reader->keys, line->user, &owner.user);
    if (err == 0 && line->org.data != NULL)
        err = rules_keys_org(reader, line->org, &owner.org);
    return err < 0 ? err : rules_keys_own(reader, &owner, number);
}

/* Errors: WEIR_ERR_RULES (the file has another shape, or a problem), WEIR_ERR_MEMORY. */
static int read_lines(struct rules_keys_reader *reader, FILE *file)
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

static void reader_open(struct rules_keys_reader *reader, bool compile)
{
    reader->overrides.rules = reader->rules;
    reader->overrides.keys = reader->keys;
    reader->overrides.compile = compile;
}

/* Gives back what only reading needs. */
static void reader_close(struct rules_keys_reader *reader)
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
    struct rules_keys_reader reader = {
        .rules = rules, .keys = &rules->keys, .file = path, .problems = problems};
    int descriptor = weir_file_open(path, reason);
    if (descriptor < 0)
        return descriptor;
    FILE *file = fdopen(descriptor, "rb");
    if (file == NULL) {
        close(descriptor);
        return WEIR_ERR_MEMORY;
    }
    reader_open(&reader, compile);
    int err = read_lines(&reader, file);
    if (err == WEIR_ERR_RULES) {
        reader_close(&reader); /* of lines that turned out to be others */
        rules_keys_free(reader.keys);
        reader_open(&reader, compile);
        err = rules_keys_read_yaml(&reader, file);
    }
    fclose(file);
    reader_close(&reader);
    return err < 0 ? err : rules_keys_finish(reader.keys);
}
