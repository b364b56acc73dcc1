/* SPDX-License-Identifier: Apache-2.0 */
/* What each key asked for: the most of one key in any second, minute and hour, as `weir replay
 * --suggest` looks for limits.
 *
 * "The most in any window" is what a sliding_window of one segment would have counted: the window's
 * own count and the share of the one before that still counts (core/window.h). So it is exactly the
 * smallest N whose limit would never have denied the key, and a key that asked for more would have
 * been denied at least once. Two counters a window are enough for that.
 *
 * Memory: 80 bytes for each route and key and 8 to 16 of the index, up to keys_max of them. When
 * that is reached, half of the keys are let go, chosen by their hash: from then on all figures are
 * about every second key (every fourth...), a sample that depends on nothing but the keys. Counts
 * of a key that stays are complete.
 *
 * Threads: one owner. Times never decrease.
 */
#ifndef WEIR_CLI_SUGGEST_DEMAND_H
#define WEIR_CLI_SUGGEST_DEMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SUGGEST_WINDOWS 3
extern const uint64_t suggest_window_ns[SUGGEST_WINDOWS]; /* 1 s, 1 min, 1 h */

struct suggest_key {
    uint64_t hash[2];
    uint64_t requests;
    uint32_t route;
    uint32_t window[SUGGEST_WINDOWS]; /* the newest one's number, modulo 2^32 */
    uint32_t count[SUGGEST_WINDOWS], before[SUGGEST_WINDOWS];
    uint32_t most[SUGGEST_WINDOWS];
};

struct suggest_demand;

/* keys_max: at least 1. NULL: no memory. */
struct suggest_demand *suggest_demand_open(uint64_t keys_max);
void suggest_demand_close(struct suggest_demand *demand);

/* Counts one request of a key on a route. *key is valid until the next call, and NULL where the key
 * is not in the sample. Returns 0 or WEIR_ERR_MEMORY. */
int suggest_demand_add(struct suggest_demand *demand, uint32_t route, const uint64_t hash[2],
                       uint64_t now_ns, uint64_t cost, const struct suggest_key **key)
    __attribute__((warn_unused_result));

/* One of so many keys is in the sample: 1, 2, 4... */
uint64_t suggest_demand_share(const struct suggest_demand *demand);

/* All keys of all routes, in no order; valid until the next call of suggest_demand_add. */
const struct suggest_key *suggest_demand_keys(const struct suggest_demand *demand, size_t *count);

/* The `most` of all keys of a route, ascending; the caller frees it. *count is their number. NULL:
 * no memory, or none. */
uint32_t *suggest_demand_sorted(const struct suggest_demand *demand, uint32_t route, int window,
                                size_t *count);

#endif
