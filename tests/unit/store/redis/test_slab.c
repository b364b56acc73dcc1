/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of memory: sizes, reuse, and the bound. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "store/redis/jitter.h"
#include "store/redis/slab.h"

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

static void what_is_given_back_last_is_taken_first(void **state)
{
    struct redis_slabs *slabs = *state;
    void *first = redis_slabs_take(slabs, 100), *second = redis_slabs_take(slabs, 100);

    assert_non_null(first);
    assert_ptr_not_equal(first, second);
    redis_slabs_give(slabs, first, 100);
    assert_ptr_equal(redis_slabs_take(slabs, REDIS_SLABS_MIN), first);
    assert_int_equal(slabs->taken, 2);
}

static void steady_use_takes_no_more_memory(void **state)
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

static void every_byte_of_every_block_is_its_own(void **state)
{
    struct redis_slabs *slabs = *state;
    struct {
        unsigned char *at;
        size_t size;
    } block[40] = {{NULL, 0}};
    uint64_t random = 3;

    for (int i = 0; i < 20000; i++) {
        size_t n = redis_random(&random) % 40;

        if (block[n].at == NULL) {
            block[n].size = 1 + redis_random(&random) % 5000;
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

static void it_stops_at_its_bound_and_goes_on_after(void **state)
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

static void the_largest_size_is_the_largest(void **state)
{
    struct redis_slabs *slabs = *state;

    assert_non_null(redis_slabs_take(slabs, REDIS_SLABS_MAX));
    assert_null(redis_slabs_take(slabs, (size_t)REDIS_SLABS_MAX + 1));
    assert_null(redis_slabs_take(slabs, SIZE_MAX));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_given_back_last_is_taken_first), TEST(steady_use_takes_no_more_memory),
        TEST(every_byte_of_every_block_is_its_own),   TEST(it_stops_at_its_bound_and_goes_on_after),
        TEST(the_largest_size_is_the_largest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
