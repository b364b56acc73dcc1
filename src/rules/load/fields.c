/* SPDX-License-Identifier: Apache-2.0 */
/* see fields.h */
#include <weir/version.h>

#include "rules/load/fields.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "core/bytes.h"
#include "rules/load/environment.h"
#include "rules/load/numbers.h"

void rules_problem(struct rules_loader *loader, const struct rules_node *node, const char *format,
                   ...)
{
    char message[1024];
    va_list values;
    va_start(values, format);
    vsnprintf(message, sizeof(message), format, values);
    va_end(values);
    loader->wrong++;
    if (!rules_problem_add(loader->problems, loader->file, node->line, node->column, message))
        loader->no_memory = true;
}

bool rules_deprecated(struct rules_loader *loader, const struct rules_node *node,
                      const char *format, ...)
{
    char message[1024];
    bool refused;
    va_list values;
    va_start(values, format);
    vsnprintf(message, sizeof(message), format, values);
    va_end(values);
    if (!rules_problem_deprecated(loader->problems, loader->file, node->line, node->column,
                                  WEIR_REFUSED_FROM, message, &refused))
        loader->no_memory = true;
    loader->wrong += refused;
    return refused;
}

void rules_fix(struct rules_loader *loader, enum weir_fix fix, struct weir_bytes text, uint32_t at)
{
    if (!rules_problem_fix(loader->problems, fix, text.data, text.size, at))
        loader->no_memory = true;
}

void *rules_keep(struct rules_loader *loader, size_t size)
{
    void *memory = rules_arena_alloc(&loader->rules->arena, size);
    loader->no_memory |= memory == NULL;
    return memory;
}

void *rules_borrow(struct rules_loader *loader, size_t size)
{
    void *memory = rules_arena_alloc(&loader->scratch, size);
    loader->no_memory |= memory == NULL;
    return memory;
}

const char *rules_keep_text(struct rules_loader *loader, const char *text, size_t size)
{
    const char *copy = rules_arena_copy(&loader->rules->arena, text, size);
    loader->no_memory |= copy == NULL;
    return copy;
}

bool rules_keep_word(struct rules_loader *loader, struct rules_string_map *words, uint32_t scope,
                     const char *text, size_t size, uint32_t number)
{
    bool kept = rules_string_map_add(words, scope, text, size, number);
    loader->no_memory |= !kept;
    return kept;
}

static const char *kind_name(const struct rules_node *node)
{
    return node->kind == RULES_MAP    ? "a mapping"
           : node->kind == RULES_LIST ? "a list"
           : node->size == 0          ? "nothing"
                                      : "a text";
}

/* What other limiters call the parts of a rate. */
static bool is_part_of_rate(const char *word, const char *const *names, uint32_t count)
{
    static const char *const parts[] = {"window", "max",      "period",
                                        "per",    "interval", "max_requests"};
    bool part = false, takes_rate = false;
    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
        part |= strcmp(word, parts[i]) == 0;
    for (uint32_t i = 0; i < count; i++)
        takes_rate |= strcmp(names[i], "rate") == 0;
    return part && takes_rate;
}

static void unknown_key(struct rules_loader *loader, const struct rules_node *key, const char *what,
                        const struct rules_field *fields, uint32_t count)
{
    const char *names[RULES_KEYWORDS_MAX];
    struct rules_quote quote;
    char all[512] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < count && i < RULES_KEYWORDS_MAX; i++) {
        names[i] = fields[i].name;
        int size = snprintf(all + used, sizeof(all) - used, "%s%s", i > 0 ? ", " : "", names[i]);
        used += size > 0 && (size_t)size < sizeof(all) - used ? (size_t)size : 0;
    }
    rules_quote(&quote, key->text, key->size);
    const char *nearest = rules_nearest(key->text, key->size, names, count);
    if (is_part_of_rate(key->text, names,
                        count < RULES_KEYWORDS_MAX ? count : RULES_KEYWORDS_MAX)) {
        rules_problem(loader, key,
                      "%s has no key %s; `rate` says how many in which time, as in `rate: 100/min`",
                      what, quote.text);
    } else if (nearest) {
        rules_problem(loader, key, "%s has no key %s; did you mean `%s`?", what, quote.text,
                      nearest);
    } else if (strcmp(key->text, "<<") == 0) {
        rules_problem(loader, key, "merge keys (`<<`) are not supported");
    } else {
        rules_problem(loader, key, "%s has no key %s; its keys are %s", what, quote.text, all);
    }
}

bool rules_fields(struct rules_loader *loader, const struct rules_node *node, const char *what,
                  struct rules_field *fields, uint32_t count)
{
    if (node->kind != RULES_MAP) {
        rules_problem(loader, node, "%s must be a mapping, not %s", what, kind_name(node));
        return false;
    }
    for (uint32_t i = 0; i < node->size; i += 2) {
        const struct rules_node *key = node->items[i];
        if (key->kind != RULES_SCALAR)
            continue; /* reported by the document */
        uint32_t f = 0;
        while (f < count &&
               !weir_bytes_are((struct weir_bytes){key->text, key->size}, fields[f].name))
            f++;
        if (f == count) {
            unknown_key(loader, key, what, fields, count);
        } else if (!fields[f].value) {
            fields[f].key = key;
            fields[f].value = node->items[i + 1];
        }
    }
    return true;
}

bool rules_read_text(struct rules_loader *loader, const struct rules_node *node, const char *what,
                     struct weir_bytes *text)
{
    if (node->kind != RULES_SCALAR || (node->plain && node->size == 0)) {
        rules_problem(loader, node, "`%s` must be a text, not %s", what, kind_name(node));
        return false;
    }
    if (memchr(node->text, '\0', node->size)) {
        rules_problem(loader, node, "`%s` has a NUL in it", what);
        return false;
    }
    *text = (struct weir_bytes){node->text, node->size};
    return true;
}

bool rules_read_bool(struct rules_loader *loader, const struct rules_node *node, const char *what,
                     bool *value)
{
    static const char *const words[] = {"false", "true"};
    struct weir_bytes text;
    struct rules_quote quote;
    if (!rules_read_text(loader, node, what, &text))
        return false;
    for (int i = 0; i < 2 && node->plain; i++) {
        if (weir_bytes_are(text, words[i])) {
            *value = i == 1;
            return true;
        }
    }
    rules_problem(loader, node, "`%s` must be true or false, not %s", what,
                  rules_quote(&quote, text.data, text.size));
    return false;
}

bool rules_read_number(struct rules_loader *loader, const struct rules_node *node, const char *what,
                       uint64_t least, uint64_t most, uint64_t *value)
{
    struct weir_bytes text;
    struct rules_quote quote;
    if (!rules_read_text(loader, node, what, &text))
        return false;
    uint64_t number = 0;
    int digits = weir_digits_parse(&number, text.data, text.size);
    bool whole = digits > 0 && (size_t)digits == text.size;
    if (digits != WEIR_ERR_RANGE && !whole) {
        rules_problem(loader, node, "`%s` must be a whole number, not %s", what,
                      rules_quote(&quote, text.data, text.size));
        return false;
    }
    if (digits < 0 || number < least || number > most) {
        rules_problem(loader, node, "`%s` must be %llu to %llu, not %s", what,
                      (unsigned long long)least, (unsigned long long)most,
                      rules_quote(&quote, text.data, text.size));
        return false;
    }
    *value = number;
    return true;
}

bool rules_read_percent(struct rules_loader *loader, const struct rules_node *node,
                        const char *what, uint32_t least, uint32_t most, uint32_t example,
                        uint32_t *percent)
{
    struct weir_bytes text;
    uint64_t value = 0;
    if (!rules_read_text(loader, node, what, &text))
        return false;
    size_t digits = text.size > 0 && text.data[text.size - 1] == '%' ? text.size - 1 : 0;
    if (digits == 0 || weir_digits_parse(&value, text.data, digits) != (int)digits ||
        value < least || value > most) {
        rules_problem(loader, node, "`%s` must be %u%% to %u%%, as in `%s: %u%%`", what, least,
                      most, what, example);
        return false;
    }
    *percent = (uint32_t)value;
    return true;
}

bool rules_read_duration(struct rules_loader *loader, const struct rules_node *node,
                         const char *what, uint64_t least_ns, uint64_t most_ns, const char *range,
                         uint64_t *value_ns)
{
    struct weir_bytes text;
    struct weir_reason reason;
    struct rules_quote quote;
    uint64_t duration_ns;
    if (!rules_read_text(loader, node, what, &text))
        return false;
    if (weir_duration_parse(&duration_ns, text.data, text.size, &reason) < 0) {
        rules_problem(loader, node, "%s", reason.text);
        return false;
    }
    if (duration_ns < least_ns || duration_ns > most_ns) {
        rules_problem(loader, node, "`%s` must be %s, not %s", what, range,
                      rules_quote(&quote, text.data, text.size));
        return false;
    }
    *value_ns = duration_ns;
    return true;
}

int rules_read_choice(struct rules_loader *loader, const struct rules_node *node, const char *what,
                      const char *const *words, uint32_t count)
{
    struct weir_bytes text;
    struct rules_quote quote;
    char all[256] = "";
    size_t used = 0;
    if (!rules_read_text(loader, node, what, &text))
        return -1;
    for (uint32_t i = 0; i < count; i++) {
        if (weir_bytes_are(text, words[i]))
            return (int)i;
        int size = snprintf(all + used, sizeof(all) - used, "%s%s", i > 0 ? ", " : "", words[i]);
        used += size > 0 && (size_t)size < sizeof(all) - used ? (size_t)size : 0;
    }
    struct rules_hint room;
    const char *hint = rules_hint(&room, text.data, text.size, words, count);
    rules_problem(loader, node, "`%s` must be one of %s, not %s%s", what, all,
                  rules_quote(&quote, text.data, text.size), hint);
    return -1;
}

struct rules_items rules_items_of(const struct rules_node *const *node)
{
    struct rules_items items = {node, 1};
    if ((*node)->kind == RULES_LIST) {
        items.items = (const struct rules_node *const *)(*node)->items;
        items.count = (*node)->size;
    }
    return items;
}

bool rules_read_status(struct rules_loader *loader, const struct rules_node *node, const char *what,
                       uint8_t statuses[RULES_STATUSES_BYTES])
{
    struct weir_bytes text;
    if (!rules_read_text(loader, node, what, &text))
        return false;
    bool three = text.size == 3 && text.data[0] >= '1' && text.data[0] <= '5';
    bool all = three && text.data[1] == 'x' && text.data[2] == 'x';
    bool one = three && text.data[1] >= '0' && text.data[1] <= '9' && text.data[2] >= '0' &&
               text.data[2] <= '9';
    if (!all && !one) {
        rules_problem(loader, node, "`%s` takes statuses: `404`, or `5xx` for a class", what);
        return false;
    }
    uint32_t first = (uint32_t)(text.data[0] - '1') * 100;
    first += one ? (uint32_t)(text.data[1] - '0') * 10 + (uint32_t)(text.data[2] - '0') : 0;
    for (uint32_t bit = first; bit < first + (all ? 100 : 1); bit++)
        statuses[bit / 8] |= (uint8_t)(1 << bit % 8);
    return true;
}

bool rules_check_name(struct rules_loader *loader, const struct rules_node *node, const char *what,
                      struct weir_bytes *name)
{
    struct rules_quote quote;
    if (!rules_read_text(loader, node, what, name))
        return false;
    bool valid = name->size >= 1 && name->size <= RULES_NAME_MAX;
    for (size_t i = 0; valid && i < name->size; i++) {
        char byte = name->data[i];
        valid = (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9') || byte == '.' ||
                byte == '_' || byte == '-';
    }
    if (!valid) {
        rules_problem(loader, node, "%s %s must be 1 to %d of a-z, 0-9, `.`, `_`, `-`", what,
                      rules_quote(&quote, name->data, name->size), RULES_NAME_MAX);
    }
    return valid;
}

const char *rules_path_of(struct rules_loader *loader, struct weir_bytes name)
{
    size_t folder_size = strlen(loader->folder);
    bool relative = name.size > 0 && name.data[0] != '/' && folder_size > 0;
    char *path = rules_keep(loader, folder_size + name.size + 2);
    if (path) {
        snprintf(path, folder_size + name.size + 2, "%s%s%s", relative ? loader->folder : "",
                 relative ? "/" : "", name.data);
    }
    return path;
}

bool rules_check_zone(struct rules_loader *loader, const struct rules_node *node, const char *what,
                      struct weir_bytes address)
{
    struct rules_quote quote;
    if (!memchr(address.data, '%', address.size))
        return true;
    rules_problem(
        loader, node,
        "%s %s: weir cannot tell the links of zones apart; write the address without `%%`", what,
        rules_quote(&quote, address.data, address.size));
    return false;
}

const char *rules_moved_path_of(struct rules_loader *loader, const struct rules_node *node,
                                const char *what, struct weir_bytes name)
{
    const char *path = rules_path_of(loader, name);
    if (!path || name.size == 0 || access(path, F_OK) == 0 || access(name.data, F_OK) != 0)
        return path;
    bool refused =
        rules_deprecated(loader, node,
                         "`%s`: %s is in the working directory; a relative path starts at "
                         "the folder of the rules file: move it to %s",
                         what, name.data, path);
    return refused ? path : rules_keep_text(loader, name.data, name.size);
}

void rules_note_secret_file(struct rules_loader *loader, const char *key, const char *path)
{
    struct weir_settings *settings = &loader->rules->settings;
    struct weir_secret_file *file = rules_keep(loader, sizeof(*file));
    if (!file)
        return;
    *file = (struct weir_secret_file){key, path, settings->secret_files};
    settings->secret_files = file;
}

const char *rules_read_secret_file(struct rules_loader *loader, const struct rules_node *node,
                                   const char *what, const char *kind)
{
    struct weir_bytes name;
    char secret[RULES_SECRET_MAX + 3];
    if (!rules_read_place(loader, node, what, &name))
        return NULL;
    const char *path = rules_path_of(loader, name);
    if (!path)
        return NULL;
    struct weir_reason reason = {{0}};
    long got = weir_file_read(path, secret, sizeof(secret), &reason);
    if (got < 0) {
        rules_problem(loader, node, "cannot read %s: %s", path, reason.text);
        return NULL;
    }
    size_t size = (size_t)got;
    size -= size > 0 && secret[size - 1] == '\n';
    size -= size > 0 && size < (size_t)got && secret[size - 1] == '\r';
    if (size == 0 || size > RULES_SECRET_MAX || memchr(secret, '\0', size) ||
        memchr(secret, '\n', size)) {
        rules_problem(loader, node, "%s must hold %s of 1 to %d bytes on one line", path, kind,
                      RULES_SECRET_MAX);
        return NULL;
    }
    rules_note_secret_file(loader, what, path);
    const char *kept = rules_keep_text(loader, secret, size);
    memset(secret, 0, sizeof(secret));
    return kept;
}
