/* SPDX-License-Identifier: Apache-2.0 */
/* see endings.h */
#include "feature/standing/endings.h"

#include <stdlib.h>

int standing_endings_init(struct standing_endings *endings, uint32_t records_count)
{
    *endings = (struct standing_endings){.places = malloc(records_count * sizeof(uint32_t))};
    if (!endings->places)
        return WEIR_ERR_MEMORY;
    /* The system gives pages to what is used only. */
    for (int i = 0; i < STANDING_ENDINGS; i++) {
        endings->heaps[i].records = malloc(records_count * sizeof(uint32_t));
        if (!endings->heaps[i].records)
            return WEIR_ERR_MEMORY;
    }
    return 0;
}

void standing_endings_free(struct standing_endings *endings)
{
    free(endings->places);
    for (int i = 0; i < STANDING_ENDINGS; i++)
        free(endings->heaps[i].records);
}

enum standing_ending standing_ending_of(const struct standing_value *value)
{
    if (value->origin == WEIR_STANDING_BY_OPERATOR || value->level == WEIR_STANDING_REVOKED)
        return STANDING_KEPT;
    return value->origin == WEIR_STANDING_BY_PENALTY ? STANDING_PENALTIES : STANDING_OTHERS;
}

static uint64_t end_of(const struct weir_standing *map, uint32_t record)
{
    return map->records[record - 1].value.until_ns;
}

static void put(struct standing_endings *endings, int which, uint32_t at, uint32_t record)
{
    endings->heaps[which].records[at] = record;
    endings->places[record - 1] = at;
}

/* Puts a record where it belongs, from the place `at` on, which is free. */
static void settle(const struct weir_standing *map, struct standing_endings *endings, int which,
                   uint32_t at, uint32_t record)
{
    uint32_t *records = endings->heaps[which].records;
    uint32_t count = endings->heaps[which].count;
    uint64_t end_ns = end_of(map, record);

    while (at > 0 && end_ns < end_of(map, records[(at - 1) / 2])) {
        put(endings, which, at, records[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    for (;;) {
        uint32_t child = 2 * at + 1;

        if (child + 1 < count && end_of(map, records[child + 1]) < end_of(map, records[child]))
            child++;
        if (child >= count || end_of(map, records[child]) >= end_ns)
            break;
        put(endings, which, at, records[child]);
        at = child;
    }
    put(endings, which, at, record);
}

void standing_endings_add(const struct weir_standing *map, struct standing_endings *endings,
                          uint32_t record)
{
    int which = (int)standing_ending_of(&map->records[record - 1].value);

    settle(map, endings, which, endings->heaps[which].count++, record);
}

void standing_endings_remove(const struct weir_standing *map, struct standing_endings *endings,
                             uint32_t record)
{
    int which = (int)standing_ending_of(&map->records[record - 1].value);
    uint32_t at = endings->places[record - 1];
    uint32_t last = endings->heaps[which].records[--endings->heaps[which].count];

    if (last != record)
        settle(map, endings, which, at, last);
}

uint32_t standing_endings_first(const struct standing_endings *endings, enum standing_ending which)
{
    return endings->heaps[which].count > 0 ? endings->heaps[which].records[0] : 0;
}
