/* SPDX-License-Identifier: Apache-2.0 */
/* see demand.h */
#include "cli/suggest/demand.h"

#include <stdlib.h>
#include <string.h>

#include <weir/error.h>

#include "core/wide.h"

#define FIRST_KEYS 1024
#define COUNT_MAX UINT32_MAX

const uint64_t suggest_window_ns[SUGGEST_WINDOWS] = {UINT64_C(1000000000), UINT64_C(60000000000),
                                                     UINT64_C(3600000000000)};

struct suggest_demand {
    uint64_t keys_max, mask; /* a key is in the sample iff no bit of its hash is in the mask */
    uint64_t count, room;
    struct suggest_key *keys;
    uint64_t slot_mask;
    uint32_t *slots; /* a key's place + 1; at most half are in use */
};

struct suggest_demand *suggest_demand_open(uint64_t keys_max)
{
    struct suggest_demand *demand = calloc(1, sizeof *demand);

    if (!demand)
        return NULL;
    demand->keys_max = keys_max < UINT32_MAX ? keys_max : UINT32_MAX - 1;
    return demand;
}

void suggest_demand_close(struct suggest_demand *demand)
{
    if (!demand)
        return;
    free(demand->keys);
    free(demand->slots);
    free(demand);
}

uint64_t suggest_demand_share(const struct suggest_demand *demand)
{
    return demand->mask + 1;
}

/* --- Finding ---------------------------------------------------------------------------------- */

static bool is_key(const struct suggest_key *key, uint32_t route, const uint64_t hash[2])
{
    return key->route == route && key->hash[0] == hash[0] && key->hash[1] == hash[1];
}

/* The slot of a key, or the empty one where it belongs. The mask takes low bits of hash[0], so the
 * place is by the other half. */
static uint32_t *slot_of(const struct suggest_demand *demand, uint32_t route,
                         const uint64_t hash[2])
{
    uint64_t at = hash[1] + route * UINT64_C(0x9e3779b97f4a7c15);

    for (at ^= at >> 32;; at++) {
        uint32_t *slot = &demand->slots[at & demand->slot_mask];

        if (*slot == 0 || is_key(&demand->keys[*slot - 1], route, hash))
            return slot;
    }
}

static void fill_slots(struct suggest_demand *demand)
{
    memset(demand->slots, 0, (demand->slot_mask + 1) * sizeof *demand->slots);
    for (uint64_t i = 0; i < demand->count; i++)
        *slot_of(demand, demand->keys[i].route, demand->keys[i].hash) = (uint32_t)i + 1;
}

static int grow(struct suggest_demand *demand)
{
    uint64_t room = demand->room == 0 ? FIRST_KEYS : 2 * demand->room, slots = 2 * room;
    struct suggest_key *keys = realloc(demand->keys, room * sizeof *keys);

    if (!keys)
        return WEIR_ERR_MEMORY;
    demand->keys = keys;

    uint32_t *index = realloc(demand->slots, slots * sizeof *index);

    if (!index)
        return WEIR_ERR_MEMORY;
    demand->slots = index;
    demand->slot_mask = slots - 1;
    demand->room = room;
    fill_slots(demand);
    return 0;
}

static bool is_sampled(const struct suggest_demand *demand, const uint64_t hash[2])
{
    return (hash[0] & demand->mask) == 0;
}

/* Lets go every second key until there is room. */
static void thin(struct suggest_demand *demand)
{
    while (demand->count >= demand->keys_max && demand->mask != UINT64_MAX) {
        uint64_t kept = 0;

        demand->mask = 2 * demand->mask + 1;
        for (uint64_t i = 0; i < demand->count; i++)
            if (is_sampled(demand, demand->keys[i].hash))
                demand->keys[kept++] = demand->keys[i];
        demand->count = kept;
    }
    fill_slots(demand);
}

/* *key: NULL where it is not in the sample. */
static int find(struct suggest_demand *demand, uint32_t route, const uint64_t hash[2],
                struct suggest_key **key)
{
    *key = NULL;
    if (!is_sampled(demand, hash))
        return 0;
    if (demand->count > 0) {
        uint32_t *slot = slot_of(demand, route, hash);

        if (*slot != 0) {
            *key = &demand->keys[*slot - 1];
            return 0;
        }
    }
    if (demand->count >= demand->keys_max) {
        thin(demand);
        if (!is_sampled(demand, hash))
            return 0;
    }
    if (demand->count == demand->room && grow(demand) < 0)
        return WEIR_ERR_MEMORY;

    struct suggest_key *added = &demand->keys[demand->count++];

    *added = (struct suggest_key){.hash = {hash[0], hash[1]}, .route = route};
    *slot_of(demand, route, hash) = (uint32_t)demand->count;
    *key = added;
    return 0;
}

/* --- Counting --------------------------------------------------------------------------------- */

static void count_in(struct suggest_key *key, int w, uint64_t now_ns, uint64_t cost)
{
    uint64_t window_ns = suggest_window_ns[w], left_ns = window_ns - now_ns % window_ns, rest;
    uint32_t window = (uint32_t)(now_ns / window_ns);

    if (key->requests == 0 || window != key->window[w]) {
        bool next = key->requests > 0 && window == key->window[w] + 1;

        key->before[w] = next ? key->count[w] : 0;
        key->count[w] = 0;
        key->window[w] = window;
    }
    key->count[w] = cost > COUNT_MAX - key->count[w] ? COUNT_MAX : key->count[w] + (uint32_t)cost;

    struct wide product = wide_multiply(key->before[w], left_ns);
    uint64_t counted = key->count[w] + wide_divide(product.hi, product.lo, window_ns, &rest);

    if (counted > COUNT_MAX)
        counted = COUNT_MAX;
    if (counted > key->most[w])
        key->most[w] = (uint32_t)counted;
}

int suggest_demand_add(struct suggest_demand *demand, uint32_t route, const uint64_t hash[2],
                       uint64_t now_ns, uint64_t cost, const struct suggest_key **key)
{
    struct suggest_key *found;

    *key = NULL;
    if (find(demand, route, hash, &found) < 0)
        return WEIR_ERR_MEMORY;
    if (!found)
        return 0;
    for (int w = 0; w < SUGGEST_WINDOWS; w++)
        count_in(found, w, now_ns, cost);
    found->requests++;
    *key = found;
    return 0;
}

/* --- Telling ---------------------------------------------------------------------------------- */

const struct suggest_key *suggest_demand_keys(const struct suggest_demand *demand, size_t *count)
{
    *count = demand->count;
    return demand->keys;
}

static int by_size(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

uint32_t *suggest_demand_sorted(const struct suggest_demand *demand, uint32_t route, int window,
                                size_t *count)
{
    size_t n = 0;

    for (uint64_t i = 0; i < demand->count; i++)
        n += demand->keys[i].route == route;
    *count = n;

    uint32_t *sorted = n > 0 ? malloc(n * sizeof *sorted) : NULL;

    if (!sorted)
        return NULL;
    n = 0;
    for (uint64_t i = 0; i < demand->count; i++)
        if (demand->keys[i].route == route)
            sorted[n++] = demand->keys[i].most[window];
    qsort(sorted, n, sizeof *sorted, by_size);
    return sorted;
}
