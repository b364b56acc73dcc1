/* SPDX-License-Identifier: Apache-2.0 */
/* see distinct.h */
#include "feature/use/distinct.h"

#include <math.h>

static uint16_t get(const struct weir_distinct *distinct, unsigned i)
{
    return atomic_load_explicit(&distinct->registers[i], memory_order_relaxed);
}

void weir_distinct_merge(struct weir_distinct *into, const struct weir_distinct *from)
{
    for (unsigned i = 0; i < WEIR_DISTINCT_REGISTERS; i++) {
        uint16_t kept = get(from, i);
        if (kept > get(into, i))
            atomic_store_explicit(&into->registers[i], kept, memory_order_relaxed);
    }
}

void weir_distinct_clear(struct weir_distinct *distinct)
{
    for (unsigned i = 0; i < WEIR_DISTINCT_REGISTERS; i++)
        atomic_store_explicit(&distinct->registers[i], 0, memory_order_relaxed);
}

uint16_t weir_distinct_below(const struct weir_distinct *distinct)
{
    uint16_t least = UINT16_MAX;
    for (unsigned i = 0; i < WEIR_DISTINCT_REGISTERS; i++)
        least = get(distinct, i) < least ? get(distinct, i) : least;
    return (uint16_t)~least;
}

/* 0: no key; else one more than the zeros that the least hash begins with. */
static int rank_of(uint16_t kept)
{
    uint32_t first = (uint16_t)~kept;
    return kept == 0 ? 0 : __builtin_clz(first << 16 | 1U << 15) + 1;
}

uint64_t weir_distinct_count(const struct weir_distinct *distinct)
{
    const double m = WEIR_DISTINCT_REGISTERS;
    double sum = 0;
    unsigned empty = 0;
    for (unsigned i = 0; i < WEIR_DISTINCT_REGISTERS; i++) {
        int rank = rank_of(get(distinct, i));
        sum += ldexp(1, -rank);
        empty += rank == 0;
    }
    double estimate = 0.7213 / (1 + 1.079 / m) * m * m / sum;
    if (estimate <= 2.5 * m && empty > 0)
        estimate = m * log(m / empty);
    return (uint64_t)(estimate + 0.5);
}
