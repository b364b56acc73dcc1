/* SPDX-License-Identifier: Apache-2.0 */
/* The home of a key: the one region whose Redis applies the home's part of a limit to it.
 *
 * Weighted rendezvous hashing (Thaler and Ravishankar, "Using name-based mappings to increase hit
 * rates", 1998; weights as in Schindelhauer and Schomaker, "Weighted distributed hash tables",
 * 2005): each region draws u in (0, 1] from a hash of the key and its name, and the home is the
 * region with the least -log2(u) / weight. So a region is home of a part of all keys that is
 * proportional to its weight, and a change of one weight moves only keys from or to that region.
 *
 * Every region computes the home alone, so the result must not depend on the machine: integers
 * only, and a hash under a key that all know.
 *
 * Threads: pure.
 */
#ifndef WEIR_FEATURE_REGION_RULES_HOME_H
#define WEIR_FEATURE_REGION_RULES_HOME_H

#include <weir/bytes.h>

#include <stdint.h>

#define RULES_REGIONS_MAX 16
#define RULES_REGION_WEIGHT_MAX 1000

/* The regions of a file, in the order of the file. */
struct rules_region {
    struct weir_bytes name;
    uint32_t weight; /* 0: home of no key, unless a limit names it */
};

/* -log2((u + 1) / 2^64) with 40 bits behind the point: 0 to 2^46. */
uint64_t rules_region_distance(uint64_t u);

/* The index of a key's home. count: 1 to RULES_REGIONS_MAX, of which one has a weight above 0. Of
 * equal ones the first name in byte order, so that the order of the file does not matter. */
uint32_t rules_region_home(const struct rules_region *regions, uint32_t count,
                           struct weir_bytes key);

#endif
