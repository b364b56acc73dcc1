/* SPDX-License-Identifier: Apache-2.0 */
/* see match_list.h */
#include "rules/load/limit/match_list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/bytes.h"
#include "feature/standing/rules/lists.h"
#include "rules/load/limit/match.h"

#define WANTED_MAX 200 /* bytes of the names shown to people */

/* --- Names ------------------------------------------------------------------------------------ */

/* "badnets" of "/etc/weir/badnets.txt". */
static struct weir_bytes stem_of(struct weir_bytes path)
{
    struct weir_bytes stem = path;
    for (size_t i = 0; i < path.size; i++)
        if (path.data[i] == '/')
            stem = (struct weir_bytes){path.data + i + 1, path.size - i - 1};
    for (size_t i = stem.size; i > 1; i--) {
        if (stem.data[i - 1] == '.') {
            stem.size = i - 1;
            break;
        }
    }
    return stem;
}

bool rules_name_list(struct rules_loader *loader, const struct rules_node *file,
                     const struct rules_node *name)
{
    struct weir_rules *rules = loader->rules;
    size_t count = rules->settings.standing->lists_count;
    struct weir_bytes text;
    if (name) {
        if (!rules_check_name(loader, name, "name", &text))
            return false;
    } else if (rules_read_text(loader, file, "file", &text)) {
        text = stem_of(text);
    } else {
        return false;
    }
    for (size_t i = 0; name && i < count; i++) {
        if (weir_bytes_are(text, rules->standing.list_names[i])) {
            rules_problem(loader, name, "the name `%.*s` is given to two lists", (int)text.size,
                          text.data);
            return false;
        }
    }
    rules->standing.list_names[count] = rules_keep_text(loader, text.data, text.size);
    return rules->standing.list_names[count];
}

/* The number of a list; -1 after a problem. */
static int find_list(struct rules_loader *loader, const struct rules_node *node)
{
    const struct weir_rules *rules = loader->rules;
    uint32_t count = (uint32_t)rules->settings.standing->lists_count;
    const char *const *names = rules->standing.list_names;
    struct weir_bytes name;
    struct rules_quote quote;
    struct rules_hint hint;
    int found = -1;
    if (!rules_read_text(loader, node, "list", &name))
        return -1;
    for (uint32_t i = 0; i < count; i++) {
        if (!weir_bytes_are(name, names[i]))
            continue;
        if (found >= 0) {
            rules_problem(loader, node, "two lists are called %s; give one of them a `name`",
                          rules_quote(&quote, name.data, name.size));
            return -1;
        }
        found = (int)i;
    }
    if (found < 0)
        rules_problem(loader, node, "no list of `standing` is called %s%s",
                      rules_quote(&quote, name.data, name.size),
                      rules_hint(&hint, name.data, name.size, names, count));
    return found;
}

/* --- Contents --------------------------------------------------------------------------------- */

struct collect {
    struct rules_loader *loader;
    uint16_t attribute;
    uint32_t *atoms; /* the part's so far */
    uint32_t count, room;
};

/* The atom of a value, which is copied where it is new. */
static uint32_t value_atom(struct rules_loader *loader, uint16_t attribute, struct weir_bytes value)
{
    uint32_t atom =
        rules_string_map_find(&loader->rules->literals, attribute,
                              rules_text_hash(value.data, value.size), value.data, value.size);
    if (atom != RULES_NONE)
        return atom;
    value.data = rules_keep_text(loader, value.data, value.size);
    return value.data ? rules_literal_atom(loader, attribute, value) : RULES_NONE;
}

static int take(void *context, const struct weir_list_item *item, struct weir_reason *reason)
{
    struct collect *collect = context;
    struct weir_rules *rules = collect->loader->rules;
    (void)reason;
    if (collect->count == collect->room) {
        uint32_t room = collect->room > 0 ? 2 * collect->room : 64;
        uint32_t *atoms = realloc(collect->atoms, room * sizeof(*atoms));
        if (!atoms)
            return WEIR_ERR_MEMORY;
        collect->atoms = atoms;
        collect->room = room;
    }
    uint32_t atom =
        collect->attribute == WEIR_ATTR_CLIENT_IP
            ? rules_address_trie_add(&rules->addresses, &item->network, &rules->atom_count)
            : value_atom(collect->loader, collect->attribute, item->value);
    collect->atoms[collect->count++] = atom;
    return atom != RULES_NONE ? 0 : WEIR_ERR_MEMORY;
}

static int compare_atoms(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* Keeps the atoms in ascending order, each once. */
static void keep_atoms(struct rules_loader *loader, struct collect *collect,
                       struct rules_part *part)
{
    uint32_t *kept = rules_keep(loader, (collect->count + (size_t)1) * sizeof(*kept));
    if (collect->count > 0)
        qsort(collect->atoms, collect->count, sizeof(*kept), compare_atoms);
    for (uint32_t i = 0; kept && i < collect->count; i++)
        if (part->count == 0 || kept[part->count - 1] != collect->atoms[i])
            kept[part->count++] = collect->atoms[i];
    part->atoms = kept;
}

/* --- The part --------------------------------------------------------------------------------- */

/* Adds a list to the part; the first one says what its values are. False after a problem. */
static bool add_list(struct rules_loader *loader, const struct rules_node *node, bool first,
                     struct rules_part *part, struct collect *collect)
{
    const struct weir_standing_settings *standing = loader->rules->settings.standing;
    struct weir_reason reason = {{0}};
    int number = find_list(loader, node);
    if (number < 0)
        return false;
    const struct weir_standing_list *list = &standing->lists[number];
    const struct weir_standing_kind *kind = &standing->kinds[list->kind];
    uint16_t attribute = loader->rules->standing.kinds[list->kind].key->attribute;
    attribute = kind->address ? WEIR_ATTR_CLIENT_IP : attribute;
    if (!first && attribute != part->attribute) {
        rules_problem(loader, node, "lists that are named together must have the same `by`");
        return false;
    }
    part->attribute = collect->attribute = attribute;
    part->kind = kind->address ? RULES_PART_ADDRESS : RULES_PART_VALUES;
    part->secret = kind->secret;
    part->name = kind->name.data;
    int err = weir_list_read(kind, list->path, take, collect, &reason);
    if (err == WEIR_ERR_MEMORY)
        loader->no_memory = true;
    else if (err < 0)
        rules_problem(loader, node, "%s", reason.text);
    return err == 0;
}

static const char *wanted_text(struct rules_loader *loader, const struct rules_items *items,
                               bool negated)
{
    char text[WANTED_MAX];
    int used = snprintf(text, sizeof(text), "%s of the list", negated ? "none" : "one");
    for (uint32_t i = 0; i < items->count && used < WANTED_MAX; i++)
        used += snprintf(text + used, sizeof(text) - (size_t)used, "%s%s", i > 0 ? " or " : " ",
                         items->items[i]->text);
    return rules_keep_text(loader, text, strlen(text));
}

bool rules_load_match_list(struct rules_loader *loader, const struct rules_node *node,
                           struct rules_part *part)
{
    struct rules_field negation = {"not", NULL, NULL};
    struct collect collect = {.loader = loader};
    if (!loader->standing || loader->rules->settings.standing->lists_count == 0) {
        rules_problem(loader, node,
                      "`list` names one of the `lists` of `standing:`, which has none");
        return false;
    }
    if (node->kind == RULES_MAP) {
        if (!rules_fields(loader, node, "a value of a match", &negation, 1))
            return false;
        part->negated = true;
        node = negation.value ? negation.value : node;
    }
    struct rules_items items = rules_items_of(&node);
    bool good = node->kind != RULES_MAP && items.count > 0;
    if (!good)
        rules_problem(loader, node, "`list` must be the name of a list, or several of them");
    for (uint32_t i = 0; good && i < items.count; i++)
        good = add_list(loader, items.items[i], i == 0, part, &collect);
    if (good) {
        keep_atoms(loader, &collect, part);
        part->wanted = wanted_text(loader, &items, part->negated);
        part->of = part->kind;
        part->kind = part->negated ? RULES_PART_SPECIAL : part->kind;
    }
    free(collect.atoms);
    return good;
}
