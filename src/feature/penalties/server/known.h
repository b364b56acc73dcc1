/* SPDX-License-Identifier: Apache-2.0 */
/* Which values have a step on a ladder: a set of bits that workers look at.
 *
 * A strike that moves nothing only makes a step last longer. Most callers have none, so their
 * strikes need not leave the worker. One bit for each penalty and value (a Bloom filter of one
 * hash, B. Bloom, 1970): it may be set for a value without a step, which costs a look at the store.
 * Bits are never cleared; after a restart only those of ladders that the history has are set. Where
 * nodes share standing, no node knows the steps of all, and every strike leaves its worker.
 *
 * Memory: 512 KiB, touched as bits are set. With 100,000 values 2 of 100 others look known.
 * Threads: any.
 */
#ifndef WEIR_FEATURE_PENALTIES_SERVER_KNOWN_H
#define WEIR_FEATURE_PENALTIES_SERVER_KNOWN_H

#include <stdatomic.h>

#include "core/text/address.h"
#include <weir/bytes.h>

#define WEIR_KNOWN_BITS (UINT64_C(1) << 22)

struct weir_known {
    _Atomic uint64_t words[WEIR_KNOWN_BITS / 64];
};

/* The hash of a penalty (empty: of none) and a value: a network, or (NULL) the id of an exact
 * value. */
uint64_t weir_known_hash(struct weir_bytes penalty, const struct weir_cidr *network,
                         const uint64_t id[2]);

void weir_known_add(struct weir_known *known, uint64_t hash);
bool weir_known_has(const struct weir_known *known, uint64_t hash);

#endif
