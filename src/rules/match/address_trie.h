/* SPDX-License-Identifier: Apache-2.0 */
/* All address prefixes of a rules file as two binary tries, one a family: finds every prefix that
 * an address is in.
 *
 * Path-compressed (PATRICIA; Morrison, 1968): a node for each prefix and each fork between
 * prefixes, so a look-up takes about log2(prefixes) steps, and at most one a bit.
 */
#ifndef WEIR_RULES_MATCH_ADDRESS_TRIE_H
#define WEIR_RULES_MATCH_ADDRESS_TRIE_H

#include "core/text/address.h"

struct rules_address_node {
    uint64_t bits[2]; /* the prefix, first bit on top; the rest zero */
    uint32_t length;
    uint32_t atom;     /* RULES_NONE: only a fork */
    uint32_t child[2]; /* by the bit behind the prefix; 0: none */
};

/* All zero is empty. nodes[0] is unused. */
struct rules_address_trie {
    struct rules_address_node *nodes;
    uint32_t count, room;
    uint32_t root[2]; /* IPv4, IPv6; 0: none */
};

/* Prefixes that one address can be in: one a length. */
#define RULES_ADDRESS_ATOMS_MAX 129

/* The atom of a prefix, made from *atoms (which then grows) when it is new. Returns RULES_NONE when
 * memory is out. */
uint32_t rules_address_trie_add(struct rules_address_trie *trie, const struct weir_cidr *cidr,
                                uint32_t *atoms);

/* Writes the atoms of all prefixes that the address is in, shortest first; returns how many. */
uint32_t rules_address_trie_find(const struct rules_address_trie *trie,
                                 const struct weir_address *address,
                                 uint32_t atoms[RULES_ADDRESS_ATOMS_MAX]);

void rules_address_trie_free(struct rules_address_trie *trie);

#endif
