/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of items by key, beside a plain array that says which there are. */
#include "base/map.h"

#include <stdlib.h>

#include "base/random.h"
#include "test.h"

#define ITEMS 3000

struct item {
    uint64_t key, hash;
};

static struct item items[ITEMS];
static bool there[ITEMS];

static uint64_t hash_of(const void *item)
{
    return ((const struct item *)item)->hash;
}

static bool is_same(const void *item, const void *key)
{
    return ((const struct item *)item)->key == *(const uint64_t *)key;
}

static const struct weir_map_kind kind = {hash_of, is_same};

static void make_items(uint64_t seed, uint64_t hashes)
{
    for (uint64_t i = 0; i < ITEMS; i++) {
        items[i] = (struct item){i, weir_random_up_to(&seed, hashes)};
        there[i] = false;
    }
}

static void check(const struct weir_map *map)
{
    uint32_t at = 0, count = 0;

    for (struct item *item; (item = weir_map_next(map, &at)); count++)
        assert_true(there[item->key]);
    assert_int_equal(count, map->count);
    for (uint64_t i = 0; i < ITEMS; i++) {
        assert_ptr_equal(weir_map_find(map, &kind, items[i].hash, &i), there[i] ? &items[i] : NULL);
        count -= there[i];
    }
    assert_int_equal(count, 0);
    assert_true(2 * map->count <= map->mask + 1);
}

/* Keeps what a random number does not remove. */
static bool keep(void *context, void *item)
{
    const struct item *one = item;
    bool kept = weir_mix(one->key ^ *(uint64_t *)context) % 3 != 0;

    there[one->key] = kept;
    return kept;
}

static void run(uint64_t seed, uint64_t hashes)
{
    struct weir_map map;

    make_items(seed, hashes);
    assert_true(weir_map_open(&map, 1));
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < ITEMS / 4; i++) {
            uint64_t at = weir_random_up_to(&seed, ITEMS - 1);

            if (!there[at])
                assert_true(weir_map_add(&map, &kind, &items[at]));
            there[at] = true;
        }
        check(&map);
        weir_map_filter(&map, &kind, keep, &seed);
        check(&map);
    }
    weir_map_close(&map);
    assert_null(map.slots);
}

TEST("an empty map has no item, and its smallest holds one")
{
    struct weir_map map;
    uint64_t key = 0;
    uint32_t at = 0;

    make_items(1, 0);
    assert_true(weir_map_open(&map, 1));
    assert_null(weir_map_find(&map, &kind, 5, &key));
    assert_null(weir_map_next(&map, &at));
    assert_true(weir_map_add(&map, &kind, &items[0]));
    assert_int_equal(map.mask, 1);
    there[0] = true;
    check(&map);
    weir_map_close(&map);
}

TEST("random additions and filters are those of a plain list")
{
    for (uint64_t seed = 1; seed <= 5; seed++)
        run(seed, UINT64_MAX);
}

TEST("items with the same few hashes stay apart and reachable")
{
    run(11, 3);
    run(12, UINT32_MAX); /* the last slots: probes and moves wrap around */
}

RUN_TESTS()
