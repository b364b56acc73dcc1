/* SPDX-License-Identifier: Apache-2.0 */
/* see address_trie.h */
#include "rules/match/address_trie.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "rules/string_map.h"

static uint64_t load_big_endian(const uint8_t bytes[8])
{
    uint64_t word;
    memcpy(&word, bytes, sizeof(word));
    return be64toh(word);
}

static void address_bits(const struct weir_address *address, uint64_t bits[2])
{
    bits[0] = load_big_endian(address->bytes);
    bits[1] = load_big_endian(address->bytes + 8);
}

static unsigned bit_at(const uint64_t bits[2], uint32_t at)
{
    return (unsigned)(at < 64 ? bits[0] >> (63 - at) : bits[1] >> (127 - at)) & 1;
}

/* How many leading bits two prefixes share. */
static uint32_t common_bits(const uint64_t a[2], const uint64_t b[2])
{
    uint64_t differ = a[0] ^ b[0];
    if (differ != 0)
        return (uint32_t)__builtin_clzll(differ);
    differ = a[1] ^ b[1];
    return differ != 0 ? 64 + (uint32_t)__builtin_clzll(differ) : 128;
}

static void keep_bits(uint64_t bits[2], uint32_t length)
{
    if (length <= 64) {
        bits[1] = 0;
        bits[0] = length == 0 ? 0 : bits[0] & UINT64_MAX << (64 - length);
    } else if (length < 128) {
        bits[1] &= UINT64_MAX << (128 - length);
    }
}

/* 0 when memory is out. */
static uint32_t add_node(struct rules_address_trie *trie, const uint64_t bits[2], uint32_t length)
{
    if (trie->count == trie->room) {
        uint32_t room = trie->room == 0 ? 16 : trie->room * 2;
        struct rules_address_node *nodes = realloc(trie->nodes, room * sizeof(*nodes));
        if (!nodes)
            return 0;
        trie->nodes = nodes;
        trie->room = room;
        trie->count = trie->count == 0 ? 1 : trie->count;
    }
    struct rules_address_node *node = &trie->nodes[trie->count];
    memset(node, 0, sizeof(*node));
    node->bits[0] = bits[0];
    node->bits[1] = bits[1];
    keep_bits(node->bits, length);
    node->length = length;
    node->atom = RULES_NONE;
    return trie->count++;
}

/* Sets what points to a node: a child of `parent`, or a root. */
static void set_link(struct rules_address_trie *trie, uint32_t parent, unsigned side,
                     uint32_t number)
{
    if (parent == 0)
        trie->root[side] = number;
    else
        trie->nodes[parent].child[side] = number;
}

/* The node of exactly this prefix, made when it is not there; 0 when memory is out. */
static uint32_t node_of(struct rules_address_trie *trie, unsigned family, const uint64_t bits[2],
                        uint32_t length)
{
    uint32_t parent = 0, number = trie->root[family];
    unsigned side = family;
    while (number != 0) {
        const struct rules_address_node *node = &trie->nodes[number];
        uint32_t common = common_bits(node->bits, bits);
        common = common > length ? length : common;
        if (common < node->length) {
            /* It leaves the trie inside this node's prefix: a fork, or the new prefix itself. */
            unsigned below = bit_at(node->bits, common);
            uint32_t fork = add_node(trie, bits, common);
            if (fork == 0)
                return 0;
            trie->nodes[fork].child[below] = number;
            set_link(trie, parent, side, fork);
            number = fork;
            continue;
        }
        if (node->length == length)
            return number;
        parent = number;
        side = bit_at(bits, node->length);
        number = node->child[side];
    }
    number = add_node(trie, bits, length);
    if (number != 0)
        set_link(trie, parent, side, number);
    return number;
}

uint32_t rules_address_trie_add(struct rules_address_trie *trie, const struct weir_cidr *cidr,
                                uint32_t *atoms)
{
    uint64_t bits[2];
    address_bits(&cidr->address, bits);
    uint32_t number = node_of(trie, cidr->address.family == 6, bits, cidr->bits);
    if (number == 0)
        return RULES_NONE;
    struct rules_address_node *node = &trie->nodes[number];
    if (node->atom == RULES_NONE)
        node->atom = (*atoms)++;
    return node->atom;
}

uint32_t rules_address_trie_find(const struct rules_address_trie *trie,
                                 const struct weir_address *address,
                                 uint32_t atoms[RULES_ADDRESS_ATOMS_MAX])
{
    if (address->family == 0)
        return 0;
    uint64_t bits[2];
    address_bits(address, bits);
    uint32_t count = 0, width = address->family == 6 ? 128 : 32;
    uint32_t number = trie->root[address->family == 6];
    while (number != 0) {
        const struct rules_address_node *node = &trie->nodes[number];
        if (common_bits(node->bits, bits) < node->length)
            break;
        if (node->atom != RULES_NONE)
            atoms[count++] = node->atom;
        number = node->length < width ? node->child[bit_at(bits, node->length)] : 0;
    }
    return count;
}

void rules_address_trie_free(struct rules_address_trie *trie)
{
    free(trie->nodes);
    memset(trie, 0, sizeof(*trie));
}
