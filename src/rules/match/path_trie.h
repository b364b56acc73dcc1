/* SPDX-License-Identifier: Apache-2.0 */
/* All path patterns of a rules file as one trie of segments: finds every pattern that a path is in,
 * in time that depends on the path's segments and the patterns that follow it, not on their number.
 *
 *   /games/:id/move   /games/:id   /games/new        root -"games"-> n1 -any-> n2* -"move"-> n3*
 *                                                                     `-"new"-> n4*        (* ends)
 *
 * Patterns that differ only in their names are one: its number is an "atom" (see index.h).
 */
#ifndef WEIR_RULES_MATCH_PATH_TRIE_H
#define WEIR_RULES_MATCH_PATH_TRIE_H

#include "rules/match/pattern.h"
#include "rules/string_map.h"

struct rules_path_node {
    uint32_t any;  /* child for "*" and ":name", or RULES_NONE */
    uint32_t rest; /* atom of the pattern that ends here with two stars, or RULES_NONE */
    uint32_t end;  /* atom of the pattern that ends here, or RULES_NONE */
};

/* All zero is empty. */
struct rules_path_trie {
    struct rules_path_node *nodes; /* the first is the root */
    uint32_t count, room;
    uint32_t depth;                   /* segments of the longest pattern */
    struct rules_string_map literals; /* (node, segment) -> node */
};

/* A path cut at its slashes, as deep as the trie goes. */
struct rules_path_segments {
    uint32_t count; /* one more than there is room for when the path is deeper */
    struct weir_bytes text[WEIR_PATTERN_SEGMENTS_MAX];
    uint64_t hash[WEIR_PATTERN_SEGMENTS_MAX];
};

/* The atom of a pattern, made from *atoms (which then grows) when it is new. Texts are borrowed.
 * Returns RULES_NONE when memory is out. */
uint32_t rules_path_trie_add(struct rules_path_trie *trie, const struct weir_path_pattern *pattern,
                             uint32_t *atoms);

/* Cuts a normalised path; "*" has no segments and is in no pattern. */
void rules_path_trie_cut(const struct rules_path_trie *trie, struct weir_bytes path,
                         struct rules_path_segments *segments);

/* Writes the atoms of all patterns that the path is in, and returns how many; past `room` it
 * returns room + 1. */
uint32_t rules_path_trie_find(const struct rules_path_trie *trie,
                              const struct rules_path_segments *segments, uint32_t *atoms,
                              uint32_t room);

void rules_path_trie_free(struct rules_path_trie *trie);

#endif
