/* SPDX-License-Identifier: Apache-2.0 */
/* The way of a decision allocates nothing: malloc and its family are this program's own, and count.
 */
#include "table_test.h"
#include "test.h"

#include <stdlib.h>

static uint64_t allocations;

/* glibc's own, under the names that it keeps for code that takes over the public ones. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

void *malloc(size_t size)
{
    allocations++;
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    allocations++;
    return __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
    allocations++;
    return __libc_realloc(old, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    allocations++;
    return __libc_memalign(alignment, size);
}

static const struct weir_limit_spec specs[] = {
    {.algorithm = WEIR_GCRA, .rate = 5, .window_ns = SECOND},
    {.algorithm = WEIR_SLIDING_WINDOW, .rate = 5, .window_ns = SECOND},
    {.algorithm = WEIR_SLIDING_WINDOW, .rate = 5, .window_ns = SECOND, .segments = 10},
    {.algorithm = WEIR_SLIDING_LOG, .rate = 5, .window_ns = SECOND},
    {.algorithm = WEIR_CONCURRENCY, .rate = 5, .window_ns = SECOND},
    {.algorithm = WEIR_SLIDING_LOG, .rate = 9, .window_ns = SECOND},
};
#define LIMITS (sizeof specs / sizeof specs[0])

TEST("a million decisions of all kinds allocate nothing")
{
    struct weir_table *table = open_private_table(UINT64_C(1) << 20);
    struct weir_table_owner *owner = attach(table);
    struct weir_limit limits[LIMITS];
    uint64_t random = 3, before = allocations;

    assert_true(before > 0); /* this counts */
    for (uint32_t i = 0; i < LIMITS; i++)
        limits[i] = make_limit(table, specs[i]);
    before = allocations;
    for (uint64_t i = 0; i < 1000 * 1000; i++) {
        struct one one;
        uint32_t count = 1 + (uint32_t)(next_random(&random) % 3);

        begin_one(&one);
        for (uint32_t c = 0; c < count; c++)
            add_check(&one, table, &limits[next_random(&random) % LIMITS],
                      next_random(&random) % 30000, 1);
        one.decision.op = next_random(&random) % 8 == 0 ? next_random(&random) % 4 : 0;
        one.decision.lease.id = i + 1;
        one.decision.charged_at_ns = START + i;
        submit_one(owner, &one, START + i);
        if (i % 16 == 0)
            assert_true(weir_table_release(owner, one.checks[0].hash, i + 1) <= 0);
    }
    assert_int_equal(allocations, before);
    validate(table);
    weir_table_detach(owner);
    weir_table_close(table);
}

RUN_TESTS()
