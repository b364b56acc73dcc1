/* SPDX-License-Identifier: Apache-2.0 */
/* see index.h */
#include "standing/index.h"

#include "core/siphash.h"

/* Far beyond the longest run of slots that a secret hash makes; ends walks in a damaged file. */
#define PROBES_MAX 4096

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

uint32_t standing_index_read(const struct weir_standing *map, uint32_t tag, const uint64_t id[2],
                             uint8_t shape, struct standing_value *value, uint32_t *next,
                             bool *retry)
{
    uint64_t at = tag & map->mask;

    for (int probes = 0; probes < PROBES_MAX; probes++, at = (at + 1) & map->mask) {
        uint64_t slot = __atomic_load_n(&map->slots[at], __ATOMIC_ACQUIRE);

        if (slot == 0)
            return 0;
        if (slot >> 32 != tag)
            continue;
        if (!standing_record_read(map, (uint32_t)slot, value, next)) {
            *retry = true;
            return 0;
        }
        if (is_value(value, id, shape))
            return (uint32_t)slot;
    }
    return 0;
}

size_t standing_index_slot(const struct weir_standing *map, uint32_t tag, const uint64_t id[2],
                           uint8_t shape, bool add)
{
    uint64_t at = tag & map->mask;

    for (; map->slots[at] != 0; at = (at + 1) & map->mask)
        if (map->slots[at] >> 32 == tag &&
            is_value(&map->records[(uint32_t)map->slots[at] - 1].value, id, shape))
            return at;
    return add ? at : SIZE_MAX;
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

static void take_out(struct weir_standing *map, uint64_t hole)
{
    uint64_t mask = map->mask;

    for (uint64_t at = (hole + 1) & mask; map->slots[at] != 0; at = (at + 1) & mask) {
        uint64_t home = map->slots[at] >> 32 & mask;

        if (((at - home) & mask) < ((at - hole) & mask))
            continue;
        store(map, hole, map->slots[at]);
        hole = at;
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
