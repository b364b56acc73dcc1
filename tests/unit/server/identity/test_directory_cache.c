/* SPDX-License-Identifier: Apache-2.0 */
/* What a directory remembers: bounds, places, and what goes when it is full. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "feature/identity/server/directory_cache.h"
#include "feature/identity/server/directory_record.h"
#include "test.h"

#define SEED UINT64_C(0x1234567890abcdef)

static void digest_of(uint32_t number, uint8_t digest[WEIR_DIGEST_BYTES])
{
    memset(digest, 0, WEIR_DIGEST_BYTES);
    memcpy(digest, &number, sizeof number);
}

static struct weir_directory_entry *find(struct weir_directory_cache *cache, uint32_t number)
{
    uint8_t digest[WEIR_DIGEST_BYTES];
    digest_of(number, digest);
    return weir_directory_cache_find(cache, digest);
}

static struct weir_directory_entry *put(struct weir_directory_cache *cache, uint32_t number)
{
    uint8_t digest[WEIR_DIGEST_BYTES];
    digest_of(number, digest);
    struct weir_directory_entry *entry = weir_directory_cache_put(cache, digest);
    entry->fresh_until_ns = number;
    return entry;
}

static void drop(struct weir_directory_cache *cache, uint32_t number)
{
    uint8_t digest[WEIR_DIGEST_BYTES];
    digest_of(number, digest);
    weir_directory_cache_remove(cache, digest);
}

TEST("what was put is found until it is removed")
{
    struct weir_directory_cache cache;
    assert_int_equal(weir_directory_cache_open(&cache, 8, SEED), 0);
    assert_null(find(&cache, 1));
    struct weir_directory_entry *entry = put(&cache, 1);
    entry->record = calloc(1, sizeof *entry->record);
    assert_ptr_equal(find(&cache, 1), entry);
    assert_ptr_equal(put(&cache, 1), entry);
    assert_non_null(entry->record);
    assert_int_equal(cache.count, 1);
    drop(&cache, 2);
    drop(&cache, 1);
    assert_null(find(&cache, 1));
    assert_int_equal(cache.count, 0);
    weir_directory_cache_close(&cache);
}

TEST("one entry is a cache too")
{
    struct weir_directory_cache cache;
    assert_int_equal(weir_directory_cache_open(&cache, 1, SEED), 0);
    for (uint32_t i = 0; i < 100; i++) {
        put(&cache, i)->record = calloc(1, sizeof(struct weir_directory_record));
        assert_non_null(find(&cache, i));
        assert_int_equal(cache.count, 1);
    }
    assert_null(find(&cache, 98));
    weir_directory_cache_close(&cache);
}

TEST("a flood of new keys leaves those that are in use")
{
    struct weir_directory_cache cache;
    assert_int_equal(weir_directory_cache_open(&cache, 1000, SEED), 0);
    for (uint32_t i = 0; i < 1000; i++)
        put(&cache, i);
    for (uint32_t flood = 0; flood < 50000; flood++) {
        if (flood % 100 == 0)
            for (uint32_t i = 0; i < 100; i++)
                assert_non_null(find(&cache, i));
        put(&cache, 1000000 + flood);
    }
    assert_int_equal(cache.count, 1000);
    weir_directory_cache_close(&cache);
}

/* Random operations beside an array; what the cache has dropped by itself is dropped there too. */
TEST("it agrees with an array")
{
    enum { KEYS = 200, MAX = 64, STEPS = 200000 };
    struct weir_directory_cache cache;
    bool there[KEYS] = {false};
    uint32_t random = 7, count = 0;
    assert_int_equal(weir_directory_cache_open(&cache, MAX, SEED), 0);
    for (int step = 0; step < STEPS; step++) {
        random = random * 1664525 + 1013904223;
        uint32_t key = random >> 8 & 0xff;
        bool removes = (random >> 20 & 3) == 0;
        if (key >= KEYS)
            continue;
        if (removes) {
            drop(&cache, key);
            count -= there[key];
            there[key] = false;
        } else {
            bool full = cache.count == MAX && !there[key];
            put(&cache, key)->record = calloc(1, sizeof(struct weir_directory_record));
            free(find(&cache, key)->record);
            find(&cache, key)->record = NULL;
            count += !there[key];
            there[key] = true;
            if (full) {
                uint32_t gone = 0;
                for (uint32_t i = 0; i < KEYS; i++)
                    if (there[i] && !find(&cache, i)) {
                        there[i] = false;
                        gone++;
                    }
                assert_int_equal(gone, 1);
                count -= gone;
            }
        }
        assert_int_equal(cache.count, count);
        if (step % 64 == 0)
            for (uint32_t i = 0; i < KEYS; i++) {
                struct weir_directory_entry *entry = find(&cache, i);
                assert_int_equal(entry != NULL, there[i]);
                assert_true(!entry || entry->fresh_until_ns == i);
            }
    }
    weir_directory_cache_close(&cache);
}

RUN_TESTS()
