/* SPDX-License-Identifier: Apache-2.0 */
/* How many different keys were met: HyperLogLog.
 *
 * Source: Flajolet, Fusy, Gandouet, Meunier, "HyperLogLog: the analysis of a near-optimal
 * cardinality estimation algorithm" (AofA 2007), with linear counting for small counts (Heule et
 * al., EDBT 2013, section 5).
 *
 * A register keeps 16 bits of the hash that is the least of its keys', inverted, and not their
 * rank: so adding a key is a comparison. The rank is computed when somebody asks for the count. And
 * a key whose bits are not below the largest that any register keeps changes nothing:
 * weir_distinct_below says so of all keys at once, which then cost one comparison without touching
 * the sketch.
 *
 * Stated error: a standard error of 1.04 / sqrt(1024) = 3.3 %, up to some ten million keys.
 *
 * Memory: 2 KiB. Threads: any may add and merge: registers are atomic words, a reader sees what
 * some moment has been, and of two keys that are added to one register at one time one may be lost.
 */
#ifndef WEIR_FEATURE_USE_DISTINCT_H
#define WEIR_FEATURE_USE_DISTINCT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define WEIR_DISTINCT_BITS 10
#define WEIR_DISTINCT_REGISTERS (1 << WEIR_DISTINCT_BITS)

struct weir_distinct {
    _Atomic uint16_t registers[WEIR_DISTINCT_REGISTERS]; /* 0: no key */
};

/* Keys to be added, by the first bits of their hashes: all, but one in 65,536; or none. */
#define WEIR_DISTINCT_ALL UINT16_MAX
#define WEIR_DISTINCT_NONE 0

/* Whether a key is to be added, by 64 bits of its hash. */
static inline bool weir_distinct_matters(uint64_t hash, uint16_t below)
{
    return (uint16_t)(hash >> 48) < below;
}

/* Adds a key. */
static inline void weir_distinct_add(struct weir_distinct *distinct, uint64_t hash)
{
    uint16_t kept = (uint16_t) ~(hash >> 48);
    _Atomic uint16_t *at = &distinct->registers[hash % WEIR_DISTINCT_REGISTERS];
    if (__builtin_expect(kept > atomic_load_explicit(at, memory_order_relaxed), 0))
        atomic_store_explicit(at, kept, memory_order_relaxed);
}

/* The least `below` by which no key is left out that would change the sketch. */
uint16_t weir_distinct_below(const struct weir_distinct *distinct);

/* Adds the keys of `from`. */
void weir_distinct_merge(struct weir_distinct *into, const struct weir_distinct *from);
void weir_distinct_clear(struct weir_distinct *distinct);

/* About how many keys it has. */
uint64_t weir_distinct_count(const struct weir_distinct *distinct);

#endif
