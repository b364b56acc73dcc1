/* SPDX-License-Identifier: Apache-2.0 */
/* see home.h */
#include "feature/region/rules/home.h"

#include <stdbool.h>
#include <string.h>

#include "core/text/siphash.h"
#include "core/wide.h"

#define FRACTION_BITS 40

/* The digits of a binary logarithm, one by one: squaring x in [1, 2) doubles its logarithm, and
 * where the square is 2 or more, the next digit is 1. */
uint64_t rules_region_distance(uint64_t u)
{
    if (u == UINT64_MAX)
        return 0;
    uint64_t x = u + 1; /* at least 1 */
    int shift = __builtin_clzll(x);
    uint64_t log = (uint64_t)(63 - shift);
    x <<= shift; /* 1.63 bits behind the point */
    for (int i = 0; i < FRACTION_BITS; i++) {
        struct wide square = wide_multiply(x, x); /* 2.126 bits */
        bool two = square.hi >> 63 != 0;
        x = two ? square.hi : square.hi << 1 | square.lo >> 63;
        log = log << 1 | two;
    }
    return (UINT64_C(64) << FRACTION_BITS) - log;
}

static bool comes_first(struct weir_bytes a, struct weir_bytes b)
{
    int order = memcmp(a.data, b.data, a.size < b.size ? a.size : b.size);
    return order != 0 ? order < 0 : a.size < b.size;
}

uint32_t rules_region_home(const struct rules_region *regions, uint32_t count,
                           struct weir_bytes key)
{
    static const uint64_t known[2] = {0, 0};
    uint64_t of_key[2], best_distance = 0;
    uint32_t best = count;
    weir_siphash128(known, key.data, key.size, of_key);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t hash[2];
        if (regions[i].weight == 0)
            continue;
        weir_siphash128(of_key, regions[i].name.data, regions[i].name.size, hash);
        uint64_t distance = rules_region_distance(hash[0]);
        /* distance / weight < best / weight of best: below 2^46 * 1000 */
        uint64_t mine = best < count ? distance * regions[best].weight : 0;
        uint64_t theirs = best < count ? best_distance * regions[i].weight : 1;
        bool nearer =
            mine < theirs || (mine == theirs && comes_first(regions[i].name, regions[best].name));
        if (nearer) {
            best = i;
            best_distance = distance;
        }
    }
    return best < count ? best : 0;
}
