/* SPDX-License-Identifier: Apache-2.0 */
/* see map.h */
#include "base/map.h"

#include <stdlib.h>

#define MASK_MAX (UINT32_MAX >> 1)

bool weir_map_open(struct weir_map *map, uint32_t items)
{
    uint64_t slots = 2;

    while (slots < 2 * (uint64_t)items)
        slots *= 2;
    *map = (struct weir_map){.slots = calloc(slots, sizeof *map->slots),
                             .mask = (uint32_t)(slots - 1)};
    return map->slots;
}

void weir_map_close(struct weir_map *map)
{
    free(map->slots);
    *map = (struct weir_map){.slots = NULL};
}

void *weir_map_find(const struct weir_map *map, const struct weir_map_kind *kind, uint64_t hash,
                    const void *key)
{
    uint32_t at = (uint32_t)hash & map->mask;

    while (map->slots[at] && !kind->same(map->slots[at], key))
        at = (at + 1) & map->mask;
    return map->slots[at];
}

static void put(struct weir_map *map, const struct weir_map_kind *kind, void *item)
{
    uint32_t at = (uint32_t)kind->hash(item) & map->mask;

    while (map->slots[at])
        at = (at + 1) & map->mask;
    map->slots[at] = item;
    map->count++;
}

static bool grow(struct weir_map *map, const struct weir_map_kind *kind)
{
    struct weir_map larger;
    uint32_t at = 0;

    if (map->mask >= MASK_MAX || !weir_map_open(&larger, map->mask + 1))
        return false;
    for (void *item; (item = weir_map_next(map, &at));)
        put(&larger, kind, item);
    weir_map_close(map);
    *map = larger;
    return true;
}

bool weir_map_add(struct weir_map *map, const struct weir_map_kind *kind, void *item)
{
    if (map->count >= (map->mask + 1) / 2 && !grow(map, kind))
        return false;
    put(map, kind, item);
    return true;
}

void *weir_map_next(const struct weir_map *map, uint32_t *at)
{
    while (*at <= map->mask)
        if (map->slots[(*at)++])
            return map->slots[*at - 1];
    return NULL;
}

/* Empties a slot. What moves into it is from a slot behind it. */
static void clear(struct weir_map *map, const struct weir_map_kind *kind, uint32_t hole)
{
    for (uint32_t at = (hole + 1) & map->mask; map->slots[at]; at = (at + 1) & map->mask) {
        uint32_t home = (uint32_t)kind->hash(map->slots[at]);

        if (((at - home) & map->mask) >= ((at - hole) & map->mask)) {
            map->slots[hole] = map->slots[at];
            hole = at;
        }
    }
    map->slots[hole] = NULL;
    map->count--;
}

void weir_map_filter(struct weir_map *map, const struct weir_map_kind *kind,
                     bool (*keep)(void *context, void *item), void *context)
{
    for (uint32_t at = 0; at <= map->mask;)
        if (!map->slots[at] || keep(context, map->slots[at]))
            at++;
        else
            clear(map, kind, at); /* and look at what has moved here */
}
