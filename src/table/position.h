/* SPDX-License-Identifier: Apache-2.0 */
/* Where a key lives: from its hash to two buckets and a tag, and back.
 *
 * The 128 bits of hash are a fraction P in [0, 1). Its first K = identity_bits bits are all that
 * the region knows of a key, I = floor(P * 2^K). With n buckets,
 *
 *     I * n / 2^K = first bucket + fraction,     tag = the first 52 bits of the fraction.
 *
 * Where n * 2^52 >= 2^K, bucket and tag together give I back, so that a region of another size can
 * be filled from this one although no hash is stored. K is floor(log2 n) + 52 in a new region; a
 * copy keeps the smaller K of the two. The tag is independent of the bucket, and so is
 *
 *     second bucket = floor(fraction * n) - first bucket  (mod n),
 *
 * the first being found from the second in the same way. A slot marks which of the two it is in.
 * So a false match has a probability of keys / 2^K a lookup: at most 6n / (n * 2^51) = 2^-48.4, and
 * still below 2^-44 in a region that has grown 16 times since its keys were first written.
 */
#ifndef WEIR_TABLE_POSITION_H
#define WEIR_TABLE_POSITION_H

#include <stdbool.h>
#include <stdint.h>

#include "core/wide.h"
#include "table/layout.h"

__extension__ typedef unsigned __int128 position_wide;

struct position {
    uint64_t bucket; /* the first of its two */
    uint64_t tag;    /* TAG_BITS bits */
};

/* What the arithmetic needs of a header, kept near. */
struct position_map {
    uint64_t buckets;
    uint64_t masks[2]; /* of the hash: the bits that count */
};

static inline struct position_map position_map_of(const struct table_header *header)
{
    uint32_t bits = header->identity_bits; /* 52..87 */
    struct position_map map = {header->buckets, {UINT64_MAX, 0}};

    if (bits < 64)
        map.masks[0] <<= 64 - bits;
    else if (bits > 64)
        map.masks[1] = UINT64_MAX << (128 - bits);
    return map;
}

WIDE_INLINE struct position position_of(const struct position_map *map, const uint64_t hash[2])
{
    position_wide low = (position_wide)(hash[1] & map->masks[1]) * map->buckets;
    position_wide product = (position_wide)(hash[0] & map->masks[0]) * map->buckets;

    product += (uint64_t)(low >> 64);
    return (struct position){(uint64_t)(product >> 64), (uint64_t)product >> (64 - TAG_BITS)};
}

/* The bucket of position_of, or rarely the one before it: of half the arithmetic, for a hint. */
WIDE_INLINE uint64_t position_near(const struct position_map *map, const uint64_t hash[2])
{
    return (uint64_t)(((position_wide)hash[0] * map->buckets) >> 64);
}

/* The other bucket of a key with this tag; may be the same one. */
WIDE_INLINE uint64_t position_other(const struct position_map *map, uint64_t bucket, uint64_t tag)
{
    uint64_t sum = (uint64_t)(((position_wide)(tag << (64 - TAG_BITS)) * map->buckets) >> 64);

    return sum - bucket + (sum < bucket ? map->buckets : 0);
}

/* The position in `to` of a key whose position in `from` is known. `to` has the same K or less. */
static inline struct position position_move(const struct position_map *from, uint32_t from_bits,
                                            struct position at, const struct position_map *to)
{
    /* I is the smallest integer with floor(I * n * 2^52 / 2^K) = bucket * 2^52 + tag. */
    position_wide scaled = (((position_wide)at.bucket << TAG_BITS) | at.tag)
                           << (from_bits - TAG_BITS);
    position_wide identity = (scaled + from->buckets - 1) / from->buckets;
    uint64_t hash[2] = {0, 0};

    if (from_bits >= 64) {
        uint32_t extra = from_bits - 64;

        hash[0] = (uint64_t)(identity >> extra);
        hash[1] = extra == 0 ? 0 : (uint64_t)identity << (64 - extra);
    } else {
        hash[0] = (uint64_t)identity << (64 - from_bits);
    }
    return position_of(to, hash);
}

#define MARK_BITS 5
#define MARK_MASK 31u

/* What a slot's bits in table_bucket.marks are, in all six places. */
WIDE_INLINE uint32_t position_marks(uint64_t tag, bool second)
{
    uint32_t mark = (uint32_t)(tag & 15) << 1 | second;

    return mark * (1u | 1u << 5 | 1u << 10 | 1u << 15 | 1u << 20 | 1u << 25);
}

#endif
