/* SPDX-License-Identifier: Apache-2.0 */
/* A counter that one thread writes and any thread may read: a read gives the value of some moment.
 */
#ifndef WEIR_RULES_COUNTER_H
#define WEIR_RULES_COUNTER_H

#include <stdatomic.h>
#include <stdint.h>

/* Adds `n`; for the one writer only. No locked instruction. */
static inline void weir_count(_Atomic uint64_t *counter, uint64_t n)
{
    uint64_t value = atomic_load_explicit(counter, memory_order_relaxed);
    atomic_store_explicit(counter, value + n, memory_order_relaxed);
}

static inline uint64_t weir_counted(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

#endif
