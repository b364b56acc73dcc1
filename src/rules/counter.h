/* A counter that one thread writes and any may read: each value read is some moment's. */
#ifndef WEIR_RULES_COUNTER_H
#define WEIR_RULES_COUNTER_H

#include <stdatomic.h>
#include <stdint.h>

/* The one writer's increment: no locked instruction. */
static inline void weir_count(_Atomic uint64_t *counter)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + 1,
                          memory_order_relaxed);
}

#endif
