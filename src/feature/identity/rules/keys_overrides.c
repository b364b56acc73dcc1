/* SPDX-License-Identifier: Apache-2.0 */
/* see keys_overrides.h */
#include "feature/identity/rules/keys_overrides.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "feature/identity/rules/override.h"

/* Scopes of the words: the text of an override has its rule's number (there are fewer than these),
 * a set its members, a line its text. */
#define SCOPE_SET (UINT32_MAX - 1)
#define SCOPE_LINE (UINT32_MAX - 2)

/* Lines that are remembered; more different ones are none that repeat. */
#define LINES_MAX 65536
#define LINE_MAX 1024

void rules_overrides_free(struct rules_keys_overrides *overrides)
{
    rules_string_map_free(&overrides->words);
    rules_arena_free(&overrides->texts);
}

static int learn(struct rules_keys_overrides *overrides, uint32_t scope, const char *text,
                 size_t size, uint32_t number)
{
    const char *kept = rules_arena_copy(&overrides->texts, text, size);
    bool added = kept && rules_string_map_add(&overrides->words, scope, kept, size, number);
    return added ? 0 : WEIR_ERR_MEMORY;
}

static uint32_t known(const struct rules_keys_overrides *overrides, uint32_t scope,
                      const char *text, size_t size)
{
    return rules_string_map_find(&overrides->words, scope, rules_text_hash(text, size), text, size);
}

/* Room for one more of what an array has; *room is doubled. */
static int grow(void **array, uint32_t *room, uint32_t needed, size_t size)
{
    uint32_t more = *room == 0 ? 16 : *room;
    while (more < needed)
        more *= 2;
    if (more == *room)
        return 0;
    void *grown = realloc(*array, more * size);
    if (!grown)
        return WEIR_ERR_MEMORY;
    *array = grown;
    *room = more;
    return 0;
}

/* --- One override ----------------------------------------------------------------------------- */

static int compile(struct rules_keys_overrides *overrides, uint32_t rule, struct weir_bytes text,
                   struct weir_reason *reason)
{
    struct rules_keys *keys = overrides->keys;
    struct weir_override *made;
    void *list = keys->overrides;
    int err = rules_override_make(overrides->rules, rule, text, &made, reason);
    if (err < 0)
        return err;
    /* An unlimited one has no limit, but a place in memory. */
    overrides->limits += made->count > 0 ? made->count : 1;
    if (overrides->limits > RULES_OVERRIDES_MAX) {
        snprintf(reason->text, sizeof(reason->text),
                 "more than %d different limits of callers in this file; let callers with equal "
                 "numbers share a plan",
                 RULES_OVERRIDES_MAX);
        free(made);
        return WEIR_ERR_FULL;
    }
    err = grow(&list, &overrides->room, keys->override_count + 1, sizeof(*keys->overrides));
    if (err < 0) {
        free(made);
        return err;
    }
    keys->overrides = list;
    keys->overrides[keys->override_count] = made;
    return learn(overrides, rule, text.data, text.size, keys->override_count++);
}

int rules_overrides_add(struct rules_keys_overrides *overrides, uint32_t rule,
                        struct weir_bytes text, struct weir_reason *reason)
{
    struct rules_keys *keys = overrides->keys;
    if (!overrides->compile)
        return 0;
    uint32_t number = known(overrides, rule, text.data, text.size);
    if (number == RULES_NONE) {
        number = keys->override_count;
        int err = compile(overrides, rule, text, reason);
        if (err < 0)
            return err;
    }
    uint32_t at = overrides->count;
    while (at > 0 && keys->overrides[overrides->chosen[at - 1]]->rule >= rule)
        at--;
    if (at < overrides->count && keys->overrides[overrides->chosen[at]]->rule == rule) {
        snprintf(reason->text, sizeof(reason->text), "the limit `%s` is given twice",
                 overrides->rules->rules[rule].name);
        return WEIR_ERR_RANGE;
    }
    if (overrides->count == WEIR_OVERRIDES_MAX) {
        snprintf(reason->text, sizeof(reason->text), "more than %d limits of one caller",
                 WEIR_OVERRIDES_MAX);
        return WEIR_ERR_RANGE;
    }
    memmove(&overrides->chosen[at + 1], &overrides->chosen[at],
            (overrides->count - at) * sizeof(overrides->chosen[0]));
    overrides->chosen[at] = number;
    overrides->count++;
    return 0;
}

/* --- Sets ------------------------------------------------------------------------------------- */

static int add_set(struct rules_keys_overrides *overrides)
{
    struct rules_keys *keys = overrides->keys;
    uint32_t begin = keys->set_count > 0 ? keys->set_ends[keys->set_count - 1] : 0;
    uint32_t end = begin + overrides->count;
    bool first = keys->set_count == 0;
    void *list = keys->list, *ends = keys->set_ends;
    int err = grow(&ends, &overrides->set_room, keys->set_count + 2, sizeof(*keys->set_ends));
    keys->set_ends = ends;
    if (err == 0) {
        err = grow(&list, &overrides->list_room, end, sizeof(*keys->list));
        keys->list = list;
    }
    if (err < 0)
        return err;
    if (first)
        keys->set_ends[keys->set_count++] = 0;
    for (uint32_t i = 0; i < overrides->count; i++)
        keys->list[begin + i] = *keys->overrides[overrides->chosen[i]];
    keys->set_ends[keys->set_count++] = end;
    return 0;
}

int rules_overrides_end(struct rules_keys_overrides *overrides, uint32_t *set,
                        struct weir_reason *reason)
{
    size_t size = overrides->count * sizeof(overrides->chosen[0]);
    const char *members = (const char *)overrides->chosen;
    *set = 0;
    if (overrides->count == 0)
        return 0;
    *set = known(overrides, SCOPE_SET, members, size);
    if (*set != RULES_NONE)
        return 0;
    if (overrides->keys->set_count > RULES_OVERRIDE_SETS_MAX) {
        snprintf(reason->text, sizeof(reason->text),
                 "more than %d different sets of callers' limits in this file; let callers with "
                 "equal numbers share a plan",
                 RULES_OVERRIDE_SETS_MAX);
        return WEIR_ERR_FULL;
    }
    int err = add_set(overrides);
    if (err < 0)
        return err;
    *set = overrides->keys->set_count - 1;
    return learn(overrides, SCOPE_SET, members, size, *set);
}

/* --- Lines ------------------------------------------------------------------------------------ */

uint32_t rules_overrides_known(const struct rules_keys_overrides *overrides, struct weir_bytes text)
{
    return known(overrides, SCOPE_LINE, text.data, text.size);
}

int rules_overrides_learn(struct rules_keys_overrides *overrides, struct weir_bytes text,
                          uint32_t set)
{
    if (overrides->lines == LINES_MAX || text.size > LINE_MAX)
        return 0;
    overrides->lines++;
    return learn(overrides, SCOPE_LINE, text.data, text.size, set);
}
