/* SPDX-License-Identifier: Apache-2.0 */
/* see index.h */
#include "feature/standing/index.h"

#include "core/wide.h"

/* Slots of one cache line, and marks of one word. */
#define GROUP 8

/* Far beyond the longest run of full groups that a secret hash makes; ends walks in a damaged file.
 */
#define GROUPS_MAX 512

#define EACH_BYTE UINT64_C(0x0101010101010101)
#define HIGH_BITS UINT64_C(0x8080808080808080)

/* Digits of pi, as words without a pattern. */
#define SALT0 UINT64_C(0x243f6a8885a308d3)
#define SALT1 UINT64_C(0x13198a2e03707345)
#define SALT2 UINT64_C(0xa4093822299f31d1)
#define SALT3 UINT64_C(0x082efa98ec4e6c89)

/* The two halves of a product, folded (W. Yi, wyhash): each bit of the operands moves all of them.
 */
static uint64_t fold(uint64_t a, uint64_t b)
{
    struct wide product = wide_multiply(a, b);

    return product.lo ^ product.hi;
}

uint32_t standing_index_tag(const struct weir_standing *map, const uint64_t id[2], uint8_t shape)
{
    uint64_t hash;

    /* The id of an exact value is a secret hash already. */
    if (shape == STANDING_EXACT)
        return (uint32_t)id[0];
    /* Who does not know the secret cannot choose networks that meet, and sees no hash. */
    hash = fold(id[0] ^ map->secret[0] ^ SALT0, id[1] ^ map->secret[1] ^ shape * SALT1);
    return (uint32_t)fold(hash ^ map->secret[1] ^ SALT2, map->secret[0] ^ SALT3);
}

static uint8_t mark_of(uint32_t tag)
{
    uint8_t mark = (uint8_t)(tag >> 24);

    return mark ? mark : 0xff;
}

static bool is_value(const struct standing_value *value, const uint64_t id[2], uint8_t shape)
{
    return value->id[0] == id[0] && value->id[1] == id[1] && value->shape == shape;
}

static uint64_t groups_mask(const struct weir_standing *map)
{
    return map->mask / GROUP;
}

static uint64_t load_marks(const struct weir_standing *map, uint64_t group)
{
    return __atomic_load_n(&map->marks[group], __ATOMIC_ACQUIRE);
}

/* The highest bit of each byte that is 0 (Mycroft 1987); above such a byte perhaps of others, too.
 */
static uint64_t zero_bytes(uint64_t word)
{
    return (word - EACH_BYTE) & ~word & HIGH_BITS;
}

static uint64_t marked(uint64_t marks, uint32_t tag)
{
    return zero_bytes(marks ^ mark_of(tag) * EACH_BYTE);
}

/* The number of the lowest slot of a set of zero_bytes. */
static uint32_t lowest(uint64_t bytes)
{
    return (uint32_t)__builtin_ctzll(bytes) / 8;
}

void standing_index_prefetch(const struct weir_standing *map, uint32_t tag)
{
    __builtin_prefetch(&map->marks[tag & groups_mask(map)], 0, 3);
}

uint32_t standing_index_read(const struct weir_standing *map, uint32_t tag, const uint64_t id[2],
                             uint8_t shape, struct standing_value *value, uint32_t *next,
                             bool *retry)
{
    uint64_t group = tag & groups_mask(map);

    for (int groups = 0; groups < GROUPS_MAX; groups++, group = (group + 1) & groups_mask(map)) {
        uint64_t marks = load_marks(map, group);

        for (uint64_t left = marked(marks, tag); left != 0; left &= left - 1) {
            uint64_t slot =
                __atomic_load_n(&map->slots[group * GROUP + lowest(left)], __ATOMIC_ACQUIRE);

            if (slot == 0 || slot >> 32 != tag)
                continue;
            if (!standing_record_read(map, (uint32_t)slot, value, next)) {
                *retry = true;
                return 0;
            }
            if (is_value(value, id, shape))
                return (uint32_t)slot;
        }
        if (zero_bytes(marks) != 0)
            return 0;
    }
    return 0;
}

size_t standing_index_slot(const struct weir_standing *map, uint32_t tag, const uint64_t id[2],
                           uint8_t shape, bool add)
{
    uint64_t group = tag & groups_mask(map);

    for (;; group = (group + 1) & groups_mask(map)) {
        uint64_t marks = load_marks(map, group);

        for (uint64_t left = marked(marks, tag); left != 0; left &= left - 1) {
            size_t at = group * GROUP + lowest(left);

            if (map->slots[at] != 0 && map->slots[at] >> 32 == tag &&
                is_value(&map->records[(uint32_t)map->slots[at] - 1].value, id, shape))
                return at;
        }
        if (zero_bytes(marks) != 0)
            return add ? group * GROUP + lowest(zero_bytes(marks)) : SIZE_MAX;
    }
}

uint32_t standing_index_record(const struct weir_standing *map, size_t slot)
{
    return (uint32_t)map->slots[slot];
}

static void store(struct weir_standing *map, uint64_t at, uint64_t slot)
{
    standing_change(map);
    standing_store64(map, &map->slots[at], slot);
}

static void store_mark(struct weir_standing *map, uint64_t at, uint8_t mark)
{
    uint64_t shift = at % GROUP * 8, marks = map->marks[at / GROUP];

    marks = (marks & ~(UINT64_C(0xff) << shift)) | (uint64_t)mark << shift;
    standing_change(map);
    standing_store64(map, &map->marks[at / GROUP], marks);
}

static bool is_full(const struct weir_standing *map, uint64_t group)
{
    return zero_bytes(map->marks[group]) == 0;
}

/* A slot behind a full group whose value belongs into that group or before it; SIZE_MAX: none. */
static size_t find_displaced(const struct weir_standing *map, uint64_t full)
{
    uint64_t mask = groups_mask(map);

    for (uint64_t group = (full + 1) & mask; group != full; group = (group + 1) & mask) {
        for (size_t at = group * GROUP; at < (group + 1) * GROUP; at++) {
            uint64_t home = map->slots[at] >> 32 & mask;

            if (map->slots[at] != 0 && ((group - home) & mask) >= ((group - full) & mask))
                return at;
        }
        if (!is_full(map, group))
            return SIZE_MAX;
    }
    return SIZE_MAX;
}

static void take_out(struct weir_standing *map, size_t hole)
{
    /* Values of a group that has room already are not behind it. */
    size_t other = is_full(map, hole / GROUP) ? find_displaced(map, hole / GROUP) : SIZE_MAX;

    while (other != SIZE_MAX) {
        bool full = is_full(map, other / GROUP);

        /* What was in the hole is not found from here on, what comes into it from there on. */
        store(map, hole, map->slots[other]);
        store_mark(map, hole, mark_of((uint32_t)(map->slots[other] >> 32)));
        hole = other;
        other = full ? find_displaced(map, hole / GROUP) : SIZE_MAX;
    }
    store(map, hole, 0);
    store_mark(map, hole, 0);
}

void standing_index_link(struct weir_standing *map, size_t slot, uint32_t tag, uint32_t record)
{
    if (record == 0) {
        take_out(map, slot);
        return;
    }
    store_mark(map, slot, mark_of(tag));
    store(map, slot, (uint64_t)tag << 32 | record);
}
