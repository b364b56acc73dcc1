/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers to draw and to hash with, by the published values. */
#include "base/random.h"
#include "test.h"

TEST("a seed gives the numbers of splitmix64")
{
    uint64_t seed = 1234567;

    assert_int_equal(weir_random(&seed), UINT64_C(6457827717110365317));
    assert_int_equal(weir_random(&seed), UINT64_C(3203168211198807973));
    assert_int_equal(weir_random(&seed), UINT64_C(9817491932198370423));
}

TEST("a number is at most what is asked for, both ends included")
{
    uint64_t seed = 7;
    unsigned seen[4] = {0};

    assert_int_equal(weir_random_up_to(&seed, 0), 0);
    for (int i = 0; i < 1000; i++) {
        uint64_t drawn = weir_random_up_to(&seed, 3);

        assert_true(drawn <= 3);
        seen[drawn]++;
    }
    for (int i = 0; i < 4; i++)
        assert_true(seen[i] > 150);
    (void)weir_random_up_to(&seed, UINT64_MAX); /* which has no number above it */
}

TEST("a text has the hash of FNV-1a, whole or in pieces")
{
    assert_int_equal(weir_fnv(WEIR_FNV_BASIS, "", 0), UINT64_C(0xcbf29ce484222325));
    assert_int_equal(weir_fnv(WEIR_FNV_BASIS, "a", 1), UINT64_C(0xaf63dc4c8601ec8c));
    assert_int_equal(weir_fnv(WEIR_FNV_BASIS, "foobar", 6), UINT64_C(0x85944171f73967e8));
    assert_int_equal(weir_fnv(weir_fnv(WEIR_FNV_BASIS, "foo", 3), "bar", 3),
                     UINT64_C(0x85944171f73967e8));
}

RUN_TESTS()
