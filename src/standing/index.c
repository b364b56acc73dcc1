/* SPDX-License-Identifier: Apache-2.0 */
/* see index.h */
#include "standing/index.h"

#include "core/siphash.h"

/* Slots of one cache line. */
#define GROUP 8

/* Far beyond the longest run of full groups that a secret hash makes; ends walks in a damaged file.
 */
#define GROUPS_MAX 512

uint32_t standing_index_tag(const struct weir_standing *map, const uint64_t id[2], uint8_t shape)
{
    uint64_t text[3] = {id[0], id[1], shape}, hash[2];

    /* The id of an exact value is a secret hash already. */
    if (shape == STANDING_EXACT)
        return (uint32_t)id[0];
    weir_siphash128(map->secret, text, sizeof text, hash);
    return (uint32_t)hash[0];
}

static bool is_value(const struct standing_value *value, const uint64_t id[2], uint8_t shape)
{
    return value->id[0] == id[0] && value->id[1] == id[1] && value->shape == shape;
}

static uint64_t groups_mask(const struct weir_standing *map)
{
    return map->mask / GROUP;
}

/* A bit for each slot of a group that has the tag, and (shifted by GROUP) for each that is empty.
 * Without a branch: a look-up that finds nothing, as most do, has none that is hard to predict. */
static uint32_t group_match(const uint64_t *slots, uint32_t tag)
{
    uint32_t match = 0;

    for (uint32_t i = 0; i < GROUP; i++) {
        uint64_t slot = __atomic_load_n(&slots[i], __ATOMIC_ACQUIRE);

        match |= (uint32_t)(slot >> 32 == tag && slot != 0) << i;
        match |= (uint32_t)(slot == 0) << (i + GROUP);
    }
    return match;
}

#define TAGGED(match) ((match) & ((1U << GROUP) - 1))
#define HAS_EMPTY(match) ((match) >> GROUP != 0)

uint32_t standing_index_read(const struct weir_standing *map, uint32_t tag, const uint64_t id[2],
                             uint8_t shape, struct standing_value *value, uint32_t *next,
                             bool *retry)
{
    uint64_t group = tag & groups_mask(map);

    for (int groups = 0; groups < GROUPS_MAX; groups++, group = (group + 1) & groups_mask(map)) {
        const uint64_t *slots = &map->slots[group * GROUP];
        uint32_t match = group_match(slots, tag);

        for (uint32_t left = TAGGED(match); left != 0; left &= left - 1) {
            uint64_t slot = __atomic_load_n(&slots[__builtin_ctz(left)], __ATOMIC_ACQUIRE);

            if (!standing_record_read(map, (uint32_t)slot, value, next)) {
                *retry = true;
                return 0;
            }
            if (is_value(value, id, shape))
                return (uint32_t)slot;
        }
        if (HAS_EMPTY(match))
            return 0;
    }
    return 0;
}

size_t standing_index_slot(const struct weir_standing *map, uint32_t tag, const uint64_t id[2],
                           uint8_t shape, bool add)
{
    uint64_t group = tag & groups_mask(map);

    for (;; group = (group + 1) & groups_mask(map)) {
        uint32_t match = group_match(&map->slots[group * GROUP], tag);

        for (uint32_t left = TAGGED(match); left != 0; left &= left - 1) {
            size_t at = group * GROUP + (size_t)__builtin_ctz(left);

            if (is_value(&map->records[(uint32_t)map->slots[at] - 1].value, id, shape))
                return at;
        }
        if (HAS_EMPTY(match))
            return add ? group * GROUP + (size_t)__builtin_ctz(match >> GROUP) : SIZE_MAX;
    }
}

uint32_t standing_index_record(const struct weir_standing *map, size_t slot)
{
    return (uint32_t)map->slots[slot];
}

static void store(struct weir_standing *map, uint64_t at, uint64_t slot)
{
    standing_change(map);
    __atomic_store_n(&map->slots[at], slot, __ATOMIC_RELEASE);
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
        if (HAS_EMPTY(group_match(&map->slots[group * GROUP], 0)))
            return SIZE_MAX;
    }
    return SIZE_MAX;
}

static void take_out(struct weir_standing *map, size_t hole)
{
    /* Values of a group that has room already are not behind it. */
    bool full = !HAS_EMPTY(group_match(&map->slots[hole / GROUP * GROUP], 0));
    size_t other = full ? find_displaced(map, hole / GROUP) : SIZE_MAX;

    while (other != SIZE_MAX) {
        full = !HAS_EMPTY(group_match(&map->slots[other / GROUP * GROUP], 0));
        store(map, hole, map->slots[other]);
        hole = other;
        other = full ? find_displaced(map, hole / GROUP) : SIZE_MAX;
    }
    store(map, hole, 0);
}

void standing_index_link(struct weir_standing *map, size_t slot, uint32_t tag, uint32_t record)
{
    if (record == 0)
        take_out(map, slot);
    else
        store(map, slot, (uint64_t)tag << 32 | record);
}
