/* SPDX-License-Identifier: Apache-2.0 */
/* see counts.h */
#include "feature/penalties/server/counts.h"

#include <string.h>

#include "feature/penalties/server/known.h"

#define PLACES                                                                                     \
    (sizeof((struct weir_penalty_counts *)NULL)->places / sizeof(struct weir_penalty_count))

static uint64_t mark_of(struct weir_bytes name)
{
    static const uint64_t none[2] = {0, 0};

    return weir_known_hash(name, NULL, none) | 1;
}

struct weir_penalty_count *weir_penalty_count(struct weir_penalty_counts *counts,
                                              struct weir_bytes name)
{
    uint64_t mark = mark_of(name);

    for (size_t i = 0; i < PLACES; i++)
        if (atomic_load_explicit(&counts->places[i].mark, memory_order_acquire) == mark)
            return &counts->places[i];
    return NULL;
}

/* A place that no rules of late have used. There is one: two rules have 32 names at most. */
static struct weir_penalty_count *take_place(struct weir_penalty_counts *counts)
{
    struct weir_penalty_count *place = counts->places;

    while (atomic_load(&place->mark) != 0 && place->round + 1 >= counts->round)
        place++;
    atomic_store(&place->mark, 0);
    atomic_store(&place->strikes, 0);
    memset(place->moves, 0, sizeof place->moves);
    return place;
}

void weir_penalty_counts_name(struct weir_penalty_counts *counts, const struct weir_rules *rules)
{
    counts->round++;
    for (uint32_t i = 0; i < weir_rules_penalty_count(rules); i++) {
        struct weir_bytes name = weir_rules_penalty(rules, i)->name;
        struct weir_penalty_count *place = weir_penalty_count(counts, name);

        if (!place)
            place = take_place(counts);
        place->round = counts->round;
        atomic_store_explicit(&place->mark, mark_of(name), memory_order_release);
    }
}
