/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of memory: sizes, reuse, and the bound. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "store/redis/slab.h"
#include "test.h"

#define BOUND ((size_t)4 * 1024 * 1024)

static int set_up(void **state)
{
    static struct redis_slabs slabs;

    redis_slabs_init(&slabs, BOUND);
    *state = &slabs;
    return 0;
}

static int tear_down(void **state)
{
    redis_slabs_end(*state);
    return 0;
}

TEST_WITH(set_up, tear_down, "what is given back last is taken first")
{
    struct redis_slabs *slabs = *state;
    void *first = redis_slabs_take(slabs, 100), *second = redis_slabs_take(slabs, 100);

    assert_non_null(first);
    assert_ptr_not_equal(first, second);
    redis_slabs_give(slabs, first, 100);
    assert_ptr_equal(redis_slabs_take(slabs, REDIS_SLABS_MIN), first);
    assert_int_equal(slabs->taken, 2);
}

TEST_WITH(set_up, tear_down, "steady use takes no more memory")
{
    struct redis_slabs *slabs = *state;
    void *block[50];

    for (int round = 0; round < 100; round++) {
        for (int i = 0; i < 50; i++)
            assert_non_null(block[i] = redis_slabs_take(slabs, 300));
        for (int i = 0; i < 50; i++)
            redis_slabs_give(slabs, block[i], 300);
    }
    assert_in_range(slabs->bytes, 1, REDIS_SLABS_SLAB + 4096);
    assert_int_equal(slabs->taken, 0);
}

TEST_WITH(set_up, tear_down, "every byte of every block is its own")
{
    struct redis_slabs *slabs = *state;
    struct {
        unsigned char *at;
        size_t size;
    } block[40] = {{NULL, 0}};
    uint64_t random = 3;

    for (int i = 0; i < 20000; i++) {
        size_t n = weir_random(&random) % 40;

        if (block[n].at == NULL) {
            block[n].size = 1 + weir_random(&random) % 5000;
            block[n].at = redis_slabs_take(slabs, block[n].size);
            assert_non_null(block[n].at);
            assert_int_equal((uintptr_t)block[n].at % 16, 0);
            memset(block[n].at, (int)n, block[n].size);
            continue;
        }
        for (size_t b = 0; b < block[n].size; b++)
            assert_int_equal(block[n].at[b], n);
        redis_slabs_give(slabs, block[n].at, block[n].size);
        block[n].at = NULL;
    }
}

TEST_WITH(set_up, tear_down, "it stops at its bound and continues after")
{
    struct redis_slabs *slabs = *state;
    void *block, *last = NULL;
    size_t count = 0;

    while ((block = redis_slabs_take(slabs, 1024)) != NULL) {
        last = block;
        count++;
    }
    assert_in_range(count, BOUND / 1024 * 9 / 10, BOUND / 1024);
    assert_null(redis_slabs_take(slabs, REDIS_SLABS_MAX));
    redis_slabs_give(slabs, last, 1024);
    assert_ptr_equal(redis_slabs_take(slabs, 1024), last);
    assert_null(redis_slabs_take(slabs, 1024));
}

TEST_WITH(set_up, tear_down, "the largest size is the largest")
{
    struct redis_slabs *slabs = *state;

    assert_non_null(redis_slabs_take(slabs, REDIS_SLABS_MAX));
    assert_null(redis_slabs_take(slabs, (size_t)REDIS_SLABS_MAX + 1));
    assert_null(redis_slabs_take(slabs, SIZE_MAX));
}

RUN_TESTS()
