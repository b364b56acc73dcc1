/* SPDX-License-Identifier: Apache-2.0 */
/* see networks.h */
#include "standing/networks.h"

static uint32_t bit(const uint64_t key[2], uint32_t at)
{
    return key[at / 64] >> (63 - at % 64) & 1;
}

/* How many bits two keys begin with in common. */
static uint32_t common(const uint64_t a[2], const uint64_t b[2])
{
    if (a[0] != b[0])
        return (uint32_t)__builtin_clzll(a[0] ^ b[0]);
    return a[1] != b[1] ? 64 + (uint32_t)__builtin_clzll(a[1] ^ b[1]) : 128;
}

static bool is_ipv6(uint8_t shape)
{
    return shape >= STANDING_SHAPE6;
}

static uint32_t shape_bits(uint8_t shape)
{
    return (uint32_t)shape - (is_ipv6(shape) ? STANDING_SHAPE6 : STANDING_SHAPE4);
}

bool standing_networks_walk(const struct weir_standing *map, const uint64_t key[2], bool ipv6,
                            bool (*found)(void *context, uint32_t record), void *context)
{
    uint32_t number = __atomic_load_n(&map->header->roots[ipv6], __ATOMIC_ACQUIRE);
    uint32_t least = 0, most = ipv6 ? 128 : 32;

    while (number != 0) {
        const struct standing_node *node;
        uint64_t node_key[2];
        uint32_t bits, record;

        if (number - 1 >= map->nodes_count)
            return false;
        node = &map->nodes[number - 1];
        node_key[0] = __atomic_load_n(&node->key[0], __ATOMIC_ACQUIRE);
        node_key[1] = __atomic_load_n(&node->key[1], __ATOMIC_ACQUIRE);
        bits = __atomic_load_n(&node->bits, __ATOMIC_ACQUIRE);
        record = __atomic_load_n(&node->record, __ATOMIC_ACQUIRE);
        /* A node that was used again for another network: the walk would not end. */
        if (bits < least || bits > most)
            return false;
        if (common(key, node_key) < bits)
            return true;
        if (record != 0 && !found(context, record))
            return false;
        if (bits == most)
            return true;
        number = __atomic_load_n(&node->child[bit(key, bits)], __ATOMIC_ACQUIRE);
        least = bits + 1;
    }
    return true;
}

/* The last links of the way to a network. */
struct way {
    uint32_t *link;   /* to the node with the most bits that are all of the network's, or to what
                         is in the place of the network */
    uint32_t *parent; /* to the node that has `link`; NULL: it is the root */
    bool found;
};

static struct way walk(struct weir_standing *map, const uint64_t key[2], uint8_t shape)
{
    struct way way = {.link = &map->header->roots[is_ipv6(shape)]};
    uint32_t bits = shape_bits(shape);

    while (*way.link != 0) {
        struct standing_node *node = &map->nodes[*way.link - 1];

        if (node->bits > bits || common(key, node->key) < node->bits)
            return way;
        if (node->bits == bits) {
            way.found = true;
            return way;
        }
        way.parent = way.link;
        way.link = &node->child[bit(key, node->bits)];
    }
    return way;
}

uint32_t *standing_networks_find(struct weir_standing *map, const uint64_t key[2], uint8_t shape)
{
    struct way way = walk(map, key, shape);
    struct standing_node *node = way.found ? &map->nodes[*way.link - 1] : NULL;

    return node && node->record != 0 ? &node->record : NULL;
}

/* A node that no reader of the present state can reach. There is one: see
 * standing_networks_full. */
static uint32_t take_node(struct weir_standing *map, struct standing_nodes *nodes,
                          const uint64_t key[2], uint32_t bits, uint32_t record)
{
    uint32_t number = nodes->free;
    struct standing_node *node;

    if (number != 0)
        nodes->free = map->nodes[number - 1].child[0];
    else
        number = ++nodes->used;
    node = &map->nodes[number - 1];
    standing_change(map);
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t left = bits > 64 * i ? bits - 64 * i : 0;
        uint64_t mask = left == 0 ? 0 : left >= 64 ? ~UINT64_C(0) : ~UINT64_C(0) << (64 - left);

        __atomic_store_n(&node->key[i], key[i] & mask, __ATOMIC_RELEASE);
        __atomic_store_n(&node->child[i], 0, __ATOMIC_RELEASE);
    }
    __atomic_store_n(&node->bits, bits, __ATOMIC_RELEASE);
    __atomic_store_n(&node->record, record, __ATOMIC_RELEASE);
    return number;
}

static void free_node(struct weir_standing *map, struct standing_nodes *nodes, uint32_t number)
{
    /* Readers on their way through it go on to what was behind it, or see the change. */
    standing_change(map);
    __atomic_store_n(&map->nodes[number - 1].child[0], nodes->free, __ATOMIC_RELEASE);
    nodes->free = number;
}

bool standing_networks_full(const struct weir_standing *map, const struct standing_nodes *nodes)
{
    /* n networks have n - 1 branches at most. */
    return nodes->networks >= map->nodes_count / 2;
}

void standing_networks_add(struct weir_standing *map, struct standing_nodes *nodes,
                           const uint64_t key[2], uint8_t shape, uint32_t record)
{
    struct way way = walk(map, key, shape);
    uint32_t bits = shape_bits(shape), behind = *way.link, number, shared;
    const uint64_t *behind_key;

    nodes->networks++;
    if (way.found) {
        standing_link(map, &map->nodes[behind - 1].record, record);
        return;
    }
    number = take_node(map, nodes, key, bits, record);
    if (behind != 0) {
        behind_key = map->nodes[behind - 1].key;
        shared = common(key, behind_key);
        if (shared >= bits) {
            __atomic_store_n(&map->nodes[number - 1].child[bit(behind_key, bits)], behind,
                             __ATOMIC_RELEASE);
        } else {
            uint32_t branch = take_node(map, nodes, key, shared, 0);

            __atomic_store_n(&map->nodes[branch - 1].child[bit(key, shared)], number,
                             __ATOMIC_RELEASE);
            __atomic_store_n(&map->nodes[branch - 1].child[bit(behind_key, shared)], behind,
                             __ATOMIC_RELEASE);
            number = branch;
        }
    }
    standing_link(map, way.link, number);
}

/* Takes out the node at a link if it has no record and less than two branches. */
static bool splice(struct weir_standing *map, struct standing_nodes *nodes, uint32_t *link)
{
    uint32_t number = *link;
    struct standing_node *node = &map->nodes[number - 1];

    if (node->record != 0 || (node->child[0] != 0 && node->child[1] != 0))
        return false;
    standing_link(map, link, node->child[0] != 0 ? node->child[0] : node->child[1]);
    free_node(map, nodes, number);
    return true;
}

void standing_networks_remove(struct weir_standing *map, struct standing_nodes *nodes,
                              const uint64_t key[2], uint8_t shape)
{
    struct way way = walk(map, key, shape);

    if (!way.found)
        return;
    nodes->networks--;
    standing_link(map, &map->nodes[*way.link - 1].record, 0);
    if (splice(map, nodes, way.link) && way.parent)
        splice(map, nodes, way.parent);
}
