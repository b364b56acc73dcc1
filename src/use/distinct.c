/* SPDX-License-Identifier: Apache-2.0 */
/* see distinct.h */
#include "use/distinct.h"

#include <math.h>

static uint8_t get(const struct weir_distinct *distinct, unsigned i)
{
    return atomic_load_explicit(&distinct->registers[i], memory_order_relaxed);
}

void weir_distinct_merge(struct weir_distinct *into, const struct weir_distinct *from)
{
    for (unsigned i = 0; i < WEIR_DISTINCT_REGISTERS; i++) {
        uint8_t rank = get(from, i);
        if (rank > get(into, i))
            atomic_store_explicit(&into->registers[i], rank, memory_order_relaxed);
    }
}

void weir_distinct_clear(struct weir_distinct *distinct)
{
    for (unsigned i = 0; i < WEIR_DISTINCT_REGISTERS; i++)
        atomic_store_explicit(&distinct->registers[i], 0, memory_order_relaxed);
}

uint64_t weir_distinct_count(const struct weir_distinct *distinct)
{
    const double m = WEIR_DISTINCT_REGISTERS;
    double sum = 0;
    unsigned empty = 0;
    for (unsigned i = 0; i < WEIR_DISTINCT_REGISTERS; i++) {
        uint8_t rank = get(distinct, i);
        sum += ldexp(1, -rank);
        empty += rank == 0;
    }
    double estimate = 0.7213 / (1 + 1.079 / m) * m * m / sum;
    if (estimate <= 2.5 * m && empty > 0)
        estimate = m * log(m / empty);
    return (uint64_t)(estimate + 0.5);
}
