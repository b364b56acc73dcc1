/* SPDX-License-Identifier: Apache-2.0 */
/* The estimate of what a call takes: smoothed, and halved where answers stay out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "store/redis/share/roundtrip.h"
#include "test.h"

#define MS UINT64_C(1000000)
#define OLD SHARE_ROUNDTRIP_OLD_NS
#define NOW (UINT64_C(3600000) * MS)

TEST("before the first answer it is the least")
{
    const struct share_roundtrip trip = {.least_ns = 5 * MS};

    assert_int_equal(share_roundtrip(&trip, 0), 5 * MS);
    assert_int_equal(share_roundtrip(&trip, UINT64_MAX), 5 * MS);
}

TEST("the first counts in full and later ones by an eighth")
{
    struct share_roundtrip trip = {.least_ns = MS};

    share_roundtrip_note(&trip, NOW - 80 * MS, NOW);
    assert_int_equal(share_roundtrip(&trip, NOW), 80 * MS);
    share_roundtrip_note(&trip, NOW, NOW + 160 * MS);
    assert_int_equal(share_roundtrip(&trip, NOW + 160 * MS), 90 * MS);
}

TEST("without answers it is halved")
{
    struct share_roundtrip trip = {.least_ns = MS};

    share_roundtrip_note(&trip, NOW - 80 * MS, NOW);
    assert_int_equal(share_roundtrip(&trip, NOW + OLD - 1), 80 * MS);
    assert_int_equal(share_roundtrip(&trip, NOW + OLD), 40 * MS);
    assert_int_equal(share_roundtrip(&trip, NOW + 3 * OLD), 10 * MS);
    assert_int_equal(share_roundtrip(&trip, NOW + 63 * OLD), MS);
    assert_int_equal(share_roundtrip(&trip, NOW + 64 * OLD), MS);
    assert_int_equal(share_roundtrip(&trip, UINT64_MAX), MS);
    /* the next is smoothed with what is left of it */
    share_roundtrip_note(&trip, NOW + OLD - 80 * MS, NOW + OLD);
    assert_int_equal(share_roundtrip(&trip, NOW + OLD), 45 * MS);
}

TEST("an answer at once is an answer")
{
    struct share_roundtrip trip = {0};

    share_roundtrip_note(&trip, NOW, NOW);
    assert_int_equal(trip.smoothed_ns, 1);
    assert_int_equal(share_roundtrip(&trip, NOW), 1);
}

TEST("a clock that goes back is of no effect")
{
    struct share_roundtrip trip = {.least_ns = MS};

    share_roundtrip_note(&trip, NOW, NOW - 1);
    assert_int_equal(trip.smoothed_ns, 0);
    share_roundtrip_note(&trip, NOW - 80 * MS, NOW);
    assert_int_equal(share_roundtrip(&trip, NOW - OLD), 80 * MS);
}

RUN_TESTS()
