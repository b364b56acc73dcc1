/* SPDX-License-Identifier: Apache-2.0 */
/* The networks of a map of standing: a binary trie for each family, without nodes of one branch
 * (Morrison, PATRICIA, 1968). A node is one network; the networks that contain an address are on
 * one way from the root.
 *
 *     10.0.0.0/8 ─0─▶ 10.1.0.0/16 ─1─▶ 10.1.128.0/24
 *                └1─▶ (10.192.0.0/10, no record) ─0─▶ …
 *                                                └1─▶ …
 */
#ifndef WEIR_STANDING_NETWORKS_H
#define WEIR_STANDING_NETWORKS_H

#include "standing/layout.h"

/* Nodes that the writer may use again; in its own memory. */
struct standing_nodes {
    uint32_t used; /* nodes below this were used before */
    uint32_t free; /* chained by child[0] */
    uint32_t networks;
};

/* Calls `found` for the first record of each network that contains an address, the widest first.
 * False: the map changed during the walk, or `found` returned false. */
bool standing_networks_walk(const struct weir_standing *map, const uint64_t key[2], bool ipv6,
                            bool (*found)(void *context, uint32_t record), void *context);

/* For the writer: where the first record of a network is linked; NULL: it is not there. */
uint32_t *standing_networks_find(struct weir_standing *map, const uint64_t key[2], uint8_t shape);
/* Whether there is no node left for another network. */
bool standing_networks_full(const struct weir_standing *map, const struct standing_nodes *nodes);
/* Links the first record of a network that is not there. Only while it is not full. */
void standing_networks_add(struct weir_standing *map, struct standing_nodes *nodes,
                           const uint64_t key[2], uint8_t shape, uint32_t record);
/* Takes out a network. */
void standing_networks_remove(struct weir_standing *map, struct standing_nodes *nodes,
                              const uint64_t key[2], uint8_t shape);

#endif
