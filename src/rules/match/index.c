/* SPDX-License-Identifier: Apache-2.0 */
/* see index.h */
#include "rules/match/index.h"

#include <stdlib.h>
#include <string.h>

#include "rules/compiled.h"

/* Dividing by a part with several values puts a limit under each; all together may make at most
 * this many entries a limit, then postings stay where they are. */
#define ENTRIES_PER_RULE 64

struct entry {
    uint32_t atom, rule, used; /* used: the parts already asked for, a set */
};

struct build {
    struct weir_rules *rules;
    uint32_t *shared; /* per atom: how many limits of the node at hand have it; zero between */
    uint64_t entries, entries_max;
};

/* Makes room for one more element of an array that doubles. */
static bool grow(void **array, uint32_t count, uint32_t *room, size_t size)
{
    if (count < *room)
        return true;
    uint32_t more = *room == 0 ? 16 : *room * 2;
    void *grown = realloc(*array, more * size);
    if (!grown)
        return false;
    *array = grown;
    *room = more;
    return true;
}

static uint32_t add_node(struct rules_index *index)
{
    void *nodes = index->nodes;
    if (!grow(&nodes, index->node_count, &index->node_room, sizeof(*index->nodes)))
        return RULES_NONE;
    index->nodes = nodes;
    memset(&index->nodes[index->node_count], 0, sizeof(*index->nodes));
    return index->node_count++;
}

static bool add_posting(struct rules_index *index, const struct rules_rule *rule,
                        const struct entry *entry)
{
    uint32_t parts = rule->part_count == 32 ? UINT32_MAX : (UINT32_C(1) << rule->part_count) - 1;
    void *postings = index->postings;
    if (!grow(&postings, index->posting_count, &index->posting_room, sizeof(*index->postings)))
        return false;
    index->postings = postings;
    index->postings[index->posting_count++] =
        (struct rules_posting){entry->rule, parts & ~entry->used};
    return true;
}

static bool add_dimension(struct rules_index *index, uint32_t node, uint16_t attribute)
{
    struct rules_index_node *at = &index->nodes[node];
    for (uint32_t i = 0; i < at->dimension_count; i++)
        if (index->dimensions[at->dimension + i] == attribute)
            return true;
    void *dimensions = index->dimensions;
    if (!grow(&dimensions, index->dimension_count, &index->dimension_room, sizeof(uint16_t)))
        return false;
    index->dimensions = dimensions;
    index->dimensions[index->dimension_count++] = attribute;
    at->dimension_count++;
    return true;
}

static bool usable(const struct rules_part *part)
{
    return !part->globs && part->kind != RULES_PART_CAPTURE && part->kind != RULES_PART_SPECIAL;
}

static void count_atoms(struct build *build, const struct entry *entries, uint32_t count, bool add)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct rules_rule *rule = &build->rules->rules[entries[i].rule];
        for (uint32_t p = 0; p < rule->part_count; p++) {
            const struct rules_part *part = &rule->parts[p];
            for (uint32_t a = 0; usable(part) && a < part->count; a++)
                build->shared[part->atoms[a]] = add ? build->shared[part->atoms[a]] + 1 : 0;
        }
    }
}

/* The part, not used yet, that a limit shares with the fewest others; NULL: none is left. */
static const struct rules_part *best_part(const struct build *build, const struct entry *entry)
{
    const struct rules_rule *rule = &build->rules->rules[entry->rule];
    const struct rules_part *best = NULL;
    uint64_t least = UINT64_MAX;
    for (uint32_t p = 0; p < rule->part_count; p++) {
        const struct rules_part *part = &rule->parts[p];
        if (!usable(part) || (entry->used >> p & 1) != 0)
            continue;
        uint64_t others = 0;
        for (uint32_t a = 0; a < part->count; a++) {
            uint32_t shared = build->shared[part->atoms[a]];
            others = shared > others ? shared : others;
        }
        if (rules_about_caller(part->attribute))
            others += UINT64_C(1) << 32;
        if (others < least) {
            least = others;
            best = part;
        }
    }
    return best;
}

static int compare_entries(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->atom != y->atom)
        return x->atom < y->atom ? -1 : 1;
    return x->rule < y->rule ? -1 : x->rule > y->rule;
}

/* Puts each limit of a node into its postings or, once a value, into `below`. Returns how many went
 * below, or RULES_NONE when memory is out. */
static uint32_t divide(struct build *build, uint32_t node, const struct entry *entries,
                       uint32_t count, struct entry **below)
{
    struct rules_index *index = &build->rules->index;
    uint32_t used = 0, room = 0;
    index->nodes[node].posting = index->posting_count;
    index->nodes[node].dimension = index->dimension_count;
    for (uint32_t i = 0; i < count; i++) {
        const struct rules_part *part = NULL;
        bool may_divide = node == 0 || build->entries < build->entries_max;
        if (count > RULES_POSTINGS_MAX && may_divide)
            part = best_part(build, &entries[i]);
        if (part && rules_about_caller(part->attribute) && count <= RULES_POSTINGS_MAX_BY_CALLER)
            part = NULL;
        if (!part) {
            if (!add_posting(index, &build->rules->rules[entries[i].rule], &entries[i]))
                return RULES_NONE;
            index->nodes[node].posting_count++;
            continue;
        }
        uint32_t bit = UINT32_C(1) << (part - build->rules->rules[entries[i].rule].parts);
        build->entries += part->count;
        if (!add_dimension(index, node, part->attribute))
            return RULES_NONE;
        for (uint32_t a = 0; a < part->count; a++) {
            void *array = *below;
            if (!grow(&array, used, &room, sizeof(struct entry)))
                return RULES_NONE;
            *below = array;
            (*below)[used++] =
                (struct entry){part->atoms[a], entries[i].rule, entries[i].used | bit};
        }
    }
    return used;
}

/* Builds a node from its entries. Every level uses a part of each limit up, so it is at most
 * RULES_PARTS_MAX deep. */
static int build_node(struct build *build, uint32_t node, const struct entry *entries,
                      uint32_t count)
{
    struct rules_index *index = &build->rules->index;
    struct entry *below = NULL;
    count_atoms(build, entries, count, true);
    uint32_t used = divide(build, node, entries, count, &below);
    count_atoms(build, entries, count, false);
    int err = used == RULES_NONE ? WEIR_ERR_MEMORY : 0;
    if (err == 0 && used > 0)
        qsort(below, used, sizeof(*below), compare_entries);
    for (uint32_t i = 0; err == 0 && i < used;) {
        uint32_t end = i + 1;
        while (end < used && below[end].atom == below[i].atom)
            end++;
        uint32_t child = add_node(index);
        if (child == RULES_NONE || !rules_pairs_add(&index->edges, node, below[i].atom, child)) {
            err = WEIR_ERR_MEMORY;
            break;
        }
        err = build_node(build, child, below + i, end - i);
        i = end;
    }
    free(below);
    return err;
}

int rules_index_build(struct weir_rules *rules)
{
    uint32_t count = rules->rule_count;
    struct build build = {.rules = rules, .entries_max = (uint64_t)count * ENTRIES_PER_RULE};
    build.shared = calloc((size_t)rules->atom_count + 1, sizeof(uint32_t));
    struct entry *entries = calloc((size_t)count + 1, sizeof(*entries));
    int err = WEIR_ERR_MEMORY;
    if (build.shared && entries && add_node(&rules->index) != RULES_NONE) {
        for (uint32_t i = 0; i < count; i++)
            entries[i].rule = i;
        err = build_node(&build, 0, entries, count);
    }
    free(build.shared);
    free(entries);
    return err;
}

void rules_index_free(struct rules_index *index)
{
    free(index->nodes);
    free(index->postings);
    free(index->dimensions);
    rules_pairs_free(&index->edges);
    memset(index, 0, sizeof(*index));
}
