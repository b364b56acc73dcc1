/* SPDX-License-Identifier: Apache-2.0 */
/* The index: from what holds of a request to the limits it may meet.
 *
 * Concept. Each literal, path pattern and address prefix in the file is an atom; a request
 * satisfies few of them (one literal at most for an attribute, the patterns its path is in, the
 * prefixes its address is in). The index is a tree of nodes; the edge (node, atom) leads to the
 * limits that need the atom:
 *
 *   root -(path /login)-> n1: [login]        n1 holds few limits: its postings
 *        -(path /search)-> n2 -(host a)-> [..]    n2 held too many: they are divided by another
 *                             -(host b)-> [..]    part of their matches
 *
 * A limit is put under the part of its match that it shares with the fewest others; where more than
 * RULES_POSTINGS_MAX limits still meet, they are divided again. So the number of limits looked at
 * follows from those that match, not from those that don't, also when every single value is common.
 * Of the limits found the other parts are then verified.
 *
 * Limits without a part that has an atom in each of its values (no match at all, or only globs)
 * are in the root. Parts about the caller (user, org, plan) are the last choice: knowing them may
 * cost a SHA-256. Memory: 16 bytes a node, 16 to 32 an edge, 8 a posting.
 */
#ifndef WEIR_RULES_MATCH_INDEX_H
#define WEIR_RULES_MATCH_INDEX_H

#include "rules/string_map.h"

/* A look-up costs less than verifying one limit (90 instructions and 145), but where all limits of
 * a node hold it is lost. To know the caller costs as much as verifying many. */
#define RULES_POSTINGS_MAX 3
#define RULES_POSTINGS_MAX_BY_CALLER 8

struct weir_rules;

struct rules_index_node {
    uint32_t posting, posting_count; /* limits of this node */
    uint32_t dimension;              /* attributes that the edges ask for */
    uint32_t dimension_count;
};

/* A limit. The edges to its node prove parts of its match; the others are still to be tested. */
struct rules_posting {
    uint32_t rule;
    uint32_t unproven; /* a bit for each of those others */
};

struct rules_index {
    struct rules_index_node *nodes; /* the first is the root */
    struct rules_posting *postings;
    uint16_t *dimensions;
    struct rules_pairs edges; /* (node, atom) -> node */
    uint32_t node_count, node_room, posting_count, posting_room, dimension_count, dimension_room;
};

/* Builds the index of all limits of `rules`. Returns 0 or WEIR_ERR_MEMORY. */
int rules_index_build(struct weir_rules *rules) __attribute__((warn_unused_result));

void rules_index_free(struct rules_index *index);

#endif
