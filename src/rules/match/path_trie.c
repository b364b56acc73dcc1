/* SPDX-License-Identifier: Apache-2.0 */
/* see path_trie.h */
#include "rules/match/path_trie.h"

#include <stdlib.h>
#include <string.h>

static uint32_t add_node(struct rules_path_trie *trie)
{
    if (trie->count == trie->room) {
        uint32_t room = trie->room == 0 ? 16 : trie->room * 2;
        struct rules_path_node *nodes = realloc(trie->nodes, room * sizeof(*nodes));
        if (!nodes)
            return RULES_NONE;
        trie->nodes = nodes;
        trie->room = room;
    }
    trie->nodes[trie->count] = (struct rules_path_node){RULES_NONE, RULES_NONE, RULES_NONE};
    return trie->count++;
}

/* The child of `node` for one segment, made when it is not there. */
static uint32_t child_of(struct rules_path_trie *trie, uint32_t node,
                         const struct weir_path_segment *segment)
{
    bool any = segment->kind == WEIR_SEGMENT_ANY;
    const struct weir_bytes *text = &segment->text;
    uint32_t child =
        any ? trie->nodes[node].any
            : rules_string_map_find(&trie->literals, node, rules_text_hash(text->data, text->size),
                                    text->data, text->size);
    if (child != RULES_NONE)
        return child;
    child = add_node(trie);
    if (child == RULES_NONE)
        return RULES_NONE;
    if (any)
        trie->nodes[node].any = child;
    else if (!rules_string_map_add(&trie->literals, node, text->data, text->size, child))
        return RULES_NONE;
    return child;
}

uint32_t rules_path_trie_add(struct rules_path_trie *trie, const struct weir_path_pattern *pattern,
                             uint32_t *atoms)
{
    if (trie->count == 0 && add_node(trie) == RULES_NONE)
        return RULES_NONE;
    uint32_t node = 0;
    bool rest = false;
    for (uint8_t i = 0; i < pattern->count && node != RULES_NONE; i++) {
        rest = pattern->segments[i].kind == WEIR_SEGMENT_REST;
        if (!rest)
            node = child_of(trie, node, &pattern->segments[i]);
    }
    if (node == RULES_NONE)
        return RULES_NONE;
    if (pattern->count > trie->depth)
        trie->depth = pattern->count;
    uint32_t *atom = rest ? &trie->nodes[node].rest : &trie->nodes[node].end;
    if (*atom == RULES_NONE)
        *atom = (*atoms)++;
    return *atom;
}

void rules_path_trie_cut(const struct rules_path_trie *trie, struct weir_bytes path,
                         struct rules_path_segments *segments)
{
    segments->count = 0;
    if (path.size == 0 || path.data[0] != '/')
        return;
    const char *at = path.data, *end = path.data + path.size;
    while (at < end) {
        if (segments->count == trie->depth) {
            segments->count++;
            return;
        }
        const char *text = ++at;
        while (at < end && *at != '/')
            at++;
        size_t size = (size_t)(at - text);
        segments->text[segments->count] = (struct weir_bytes){text, size};
        segments->hash[segments->count] = rules_text_hash(text, size);
        segments->count++;
    }
}

struct walk {
    const struct rules_path_trie *trie;
    const struct rules_path_segments *segments;
    uint32_t *atoms;
    uint32_t count, room;
};

static void found(struct walk *walk, uint32_t atom)
{
    if (atom != RULES_NONE && walk->count <= walk->room) {
        if (walk->count < walk->room)
            walk->atoms[walk->count] = atom;
        walk->count++;
    }
}

/* Follows the literals of a path from one node on; of where it may be "*" too, that branch first.
 * At most `depth` + 1 deep. */
static void walk_from(struct walk *walk, uint32_t number, uint32_t at)
{
    const struct rules_path_trie *trie = walk->trie;
    const struct rules_path_segments *segments = walk->segments;
    for (;; at++) {
        const struct rules_path_node *node = &trie->nodes[number];
        found(walk, node->rest);
        if (at == segments->count) {
            found(walk, node->end);
            return;
        }
        if (at == trie->depth)
            return;
        const struct weir_bytes *text = &segments->text[at];
        if (node->any != RULES_NONE && text->size > 0)
            walk_from(walk, node->any, at + 1);
        number = rules_string_map_find(&trie->literals, number, segments->hash[at], text->data,
                                       text->size);
        if (number == RULES_NONE)
            return;
    }
}

uint32_t rules_path_trie_find(const struct rules_path_trie *trie,
                              const struct rules_path_segments *segments, uint32_t *atoms,
                              uint32_t room)
{
    struct walk walk = {trie, segments, atoms, 0, room};
    if (trie->count > 0 && segments->count > 0)
        walk_from(&walk, 0, 0);
    return walk.count;
}

void rules_path_trie_free(struct rules_path_trie *trie)
{
    free(trie->nodes);
    rules_string_map_free(&trie->literals);
    memset(trie, 0, sizeof(*trie));
}
