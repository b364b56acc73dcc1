/* SPDX-License-Identifier: Apache-2.0 */
/* Where keys live: the second bucket of the second bucket is the first; a copy into a region of
 * another size finds every key again. */
#include "table_test.h"
#include "test.h"

#include "table/position.h"

static struct position_map map_of(uint64_t buckets, uint32_t bits)
{
    struct table_header header = {.buckets = buckets, .identity_bits = bits};

    return position_map_of(&header);
}

static uint32_t bits_for(uint64_t buckets)
{
    return 63 - (uint32_t)__builtin_clzll(buckets) + TAG_BITS;
}

static const uint64_t sizes[] = {
    16, 1000, 4095, 4096, 100003, UINT64_C(1) << 30, (UINT64_C(1) << 35) - 19};
#define SIZES (sizeof sizes / sizeof sizes[0])

TEST("both buckets lead to each other")
{
    uint64_t random = 1;

    for (size_t s = 0; s < SIZES; s++) {
        struct position_map map = map_of(sizes[s], bits_for(sizes[s]));

        for (uint32_t i = 0; i < 100000; i++) {
            uint64_t hash[2] = {next_random(&random), next_random(&random)};
            struct position at = position_of(&map, hash);
            uint64_t other = position_other(&map, at.bucket, at.tag);

            assert_true(at.bucket < sizes[s] && other < sizes[s] && at.tag >> TAG_BITS == 0);
            assert_int_equal(position_other(&map, other, at.tag), at.bucket);
        }
    }
}

TEST("the ends of the hash stay inside")
{
    for (size_t s = 0; s < SIZES; s++) {
        struct position_map map = map_of(sizes[s], bits_for(sizes[s]));
        struct position first = position_of(&map, (const uint64_t[2]){0, 0});
        struct position last = position_of(&map, (const uint64_t[2]){UINT64_MAX, UINT64_MAX});

        assert_int_equal(first.bucket, 0);
        assert_int_equal(first.tag, 0);
        assert_int_equal(last.bucket, sizes[s] - 1);
        assert_true(position_other(&map, last.bucket, last.tag) < sizes[s]);
    }
}

TEST("a key is found again in a region of any other size")
{
    uint64_t random = 2;

    for (size_t s = 0; s < SIZES; s++)
        for (size_t t = 0; t < SIZES; t++) {
            uint32_t from_bits = bits_for(sizes[s]), to_bits = bits_for(sizes[t]);
            struct position_map from = map_of(sizes[s], from_bits);
            struct position_map to = map_of(sizes[t], to_bits < from_bits ? to_bits : from_bits);

            for (uint32_t i = 0; i < 20000; i++) {
                uint64_t hash[2] = {next_random(&random), next_random(&random)};
                struct position moved =
                    position_move(&from, from_bits, position_of(&from, hash), &to);
                struct position expected = position_of(&to, hash);

                assert_int_equal(moved.bucket, expected.bucket);
                assert_int_equal(moved.tag, expected.tag);
            }
        }
}

TEST("buckets and tags are spread evenly")
{
    struct position_map map = map_of(1000, bits_for(1000));
    uint32_t first[1000] = {0}, second[1000] = {0}, tags[256] = {0};
    uint64_t random = 3;

    for (uint32_t i = 0; i < 1000000; i++) {
        uint64_t hash[2] = {next_random(&random), next_random(&random)};
        struct position at = position_of(&map, hash);

        first[at.bucket]++;
        second[position_other(&map, at.bucket, at.tag)]++;
        tags[at.tag & 255]++;
    }
    for (uint32_t i = 0; i < 1000; i++) {
        assert_in_range(first[i], 800, 1200);
        assert_in_range(second[i], 800, 1200);
    }
    for (uint32_t i = 0; i < 256; i++)
        assert_in_range(tags[i], 3500, 4300);
}

RUN_TESTS()
