/* SPDX-License-Identifier: Apache-2.0 */
/* see known.h */
#include "feature/penalties/server/known.h"

#include <string.h>

#include "base/random.h"

uint64_t weir_known_hash(struct weir_bytes penalty, const struct weir_cidr *network,
                         const uint64_t id[2])
{
    uint64_t words[2] = {0, 0}, hash = network ? network->bits + 1 : 0;

    for (size_t i = 0; i < penalty.size; i++)
        hash = weir_mix(hash ^ (unsigned char)penalty.data[i]);
    if (network)
        memcpy(words, network->address.bytes, network->address.family == 4 ? 4 : 16);
    else
        memcpy(words, id, sizeof words);
    return weir_mix(weir_mix(hash ^ words[0]) ^ words[1]);
}

void weir_known_add(struct weir_known *known, uint64_t hash)
{
    uint64_t bit = hash % WEIR_KNOWN_BITS;

    atomic_fetch_or_explicit(&known->words[bit / 64], UINT64_C(1) << bit % 64,
                             memory_order_relaxed);
}

bool weir_known_has(const struct weir_known *known, uint64_t hash)
{
    uint64_t bit = hash % WEIR_KNOWN_BITS;

    return (atomic_load_explicit(&known->words[bit / 64], memory_order_relaxed) >> bit % 64 & 1) !=
           0;
}
