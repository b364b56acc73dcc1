/* SPDX-License-Identifier: Apache-2.0 */
/* What an idle process does with its region takes no memory: a page of it becomes memory when
 * something is written there, if only a lock. */
#include "table_test.h"
#include "test.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "table/region.h"

#define BYTES (UINT64_C(64) << 20)
#define LITTLE (UINT64_C(8) << 20) /* four huge pages */

/* The memory behind the mappings that a region is in, and behind what the kernel has merged with
 * them. Pages that were only read are the kernel's one page of zeros. */
static uint64_t memory_of(const struct weir_table *table)
{
    uintptr_t begin = (uintptr_t)table->base, end = begin + table->fixed.bytes;
    FILE *maps = fopen("/proc/self/smaps", "r");
    uint64_t from, to, kib, sum = 0;
    bool within = false;
    char line[4096];

    assert_non_null(maps);
    while (fgets(line, sizeof line, maps) != NULL)
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " ", &from, &to) == 2)
            within = from < end && begin < to;
        else if (within && sscanf(line, "Anonymous: %" SCNu64 " kB", &kib) == 1)
            sum += kib * 1024;
    fclose(maps);
    return sum;
}

TEST("looking at an unused region takes no memory")
{
    struct weir_table *table = open_private_table(BYTES);
    struct weir_limit limit = make_limit(
        table, (struct weir_limit_spec){.algorithm = WEIR_GCRA, .rate = 3, .window_ns = MINUTE});
    struct weir_table_owner *owner = attach(table);
    uint64_t before = memory_of(table);

    assert_true(before < LITTLE);
    assert_true(decide_key(table, owner, &limit, 1, 1, START));
    for (uint64_t i = 0; i < 3; i++) {
        struct weir_table_stats stats;
        struct weir_table_limit_stats of_limit;

        weir_table_stats(table, START, &stats);
        weir_table_limit_stats(table, NULL, &of_limit);
        weir_table_tidy(table, START + i * SECOND, 1000);
        weir_table_mark(table, START + i * SECOND);
        assert_int_equal(stats.params, 1);
    }
    assert_true(memory_of(table) < before + LITTLE);
    weir_table_detach(owner);
    weir_table_close(table);
}

TEST("what is written takes memory and is seen here")
{
    struct weir_table *table = open_private_table(BYTES);
    struct weir_limit limit = make_limit(
        table, (struct weir_limit_spec){.algorithm = WEIR_GCRA, .rate = 3, .window_ns = MINUTE});
    struct weir_table_owner *owner = attach(table);

    for (uint64_t key = 0; key < 20000; key++)
        assert_true(decide_key(table, owner, &limit, key, 1, START));
    assert_true(memory_of(table) > BYTES / 2);
    weir_table_detach(owner);
    weir_table_close(table);
}

RUN_TESTS()
