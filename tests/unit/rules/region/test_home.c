/* SPDX-License-Identifier: Apache-2.0 */
#include "feature/region/rules/home.h"
#include "test.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#define KEYS 30000

static struct rules_region region(const char *name, size_t size, uint32_t weight)
{
    return (struct rules_region){{name, size}, weight};
}
#define REGION(name, weight) region(name, sizeof(name) - 1, weight)

static uint32_t home(const struct rules_region *regions, uint32_t count, unsigned number)
{
    char key[32];
    int size = snprintf(key, sizeof(key), "user=%u", number);
    return rules_region_home(regions, count, (struct weir_bytes){key, (size_t)size});
}

/* The logarithms are from Python's decimal, with 60 digits. */
TEST("distances are logarithms")
{
    static const struct {
        uint64_t u, distance;
    } cases[] = {
        {UINT64_C(1000), UINT64_C(59409663009399)},
        {UINT64_C(13835058055282163711), UINT64_C(456338556420)},
        {UINT64_C(6148914691236517205), UINT64_C(1742684699131)},
        {UINT64_C(18446744073709551614), UINT64_C(0)},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint64_t found = rules_region_distance(cases[i].u);
        assert_in_range(found, cases[i].distance, cases[i].distance + 1);
    }
    for (int i = 0; i < 64; i++)
        assert_int_equal(rules_region_distance((UINT64_C(1) << i) - 1), (uint64_t)(64 - i) << 40);
    assert_int_equal(rules_region_distance(UINT64_MAX), 0);
}

TEST("regions are home by weight")
{
    const struct rules_region regions[] = {REGION("eu", 3), REGION("us", 1), REGION("ap", 2),
                                           REGION("dr", 0)};
    unsigned counts[4] = {0};
    for (unsigned i = 0; i < KEYS; i++)
        counts[home(regions, 4, i)]++;
    assert_in_range(counts[0], KEYS * 48 / 100, KEYS * 52 / 100);
    assert_in_range(counts[1], KEYS * 15 / 100, KEYS * 18 / 100);
    assert_in_range(counts[2], KEYS * 31 / 100, KEYS * 36 / 100);
    assert_int_equal(counts[3], 0);
}

TEST("the order of the file does not matter")
{
    const struct rules_region one[] = {REGION("eu", 3), REGION("us", 1), REGION("ap", 2)};
    const struct rules_region other[] = {REGION("ap", 2), REGION("eu", 3), REGION("us", 1)};
    static const uint32_t place[] = {1, 2, 0};
    for (unsigned i = 0; i < 1000; i++)
        assert_int_equal(place[home(one, 3, i)], home(other, 3, i));
}

TEST("a weight moves only keys of its region")
{
    const struct rules_region before[] = {REGION("eu", 2), REGION("us", 2), REGION("ap", 2)};
    const struct rules_region after[] = {REGION("eu", 2), REGION("us", 3), REGION("ap", 2)};
    unsigned moved = 0;
    for (unsigned i = 0; i < KEYS; i++) {
        uint32_t from = home(before, 3, i), to = home(after, 3, i);
        assert_true(from == to || to == 1);
        moved += from != to;
    }
    assert_in_range(moved, KEYS * 8 / 100, KEYS * 11 / 100); /* 3/7 - 1/3 */
}

/* Every machine, and every version, has to find the same homes. */
TEST("homes never change")
{
    const struct rules_region regions[] = {REGION("eu", 1), REGION("us", 1), REGION("ap", 1)};
    char found[25] = "";
    for (unsigned i = 0; i < 24; i++)
        found[i] = (char)('0' + home(regions, 3, i));
    assert_string_equal(found, "000011010111101020001111");
}

RUN_TESTS()
