/* SPDX-License-Identifier: Apache-2.0 */
/* The estimate of what a call takes: smoothed, and halved where answers stay out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "store/redis/share/roundtrip.h"

#define MS UINT64_C(1000000)
#define OLD SHARE_ROUNDTRIP_OLD_NS
#define NOW (UINT64_C(3600000) * MS)

static void before_the_first_answer_it_is_the_least(void **state)
{
    const struct share_roundtrip trip = {.least_ns = 5 * MS};

    assert_int_equal(share_roundtrip(&trip, 0), 5 * MS);
    assert_int_equal(share_roundtrip(&trip, UINT64_MAX), 5 * MS);
}

static void the_first_counts_in_full_and_later_ones_by_an_eighth(void **state)
{
    struct share_roundtrip trip = {.least_ns = MS};

    share_roundtrip_note(&trip, NOW - 80 * MS, NOW);
    assert_int_equal(share_roundtrip(&trip, NOW), 80 * MS);
    share_roundtrip_note(&trip, NOW, NOW + 160 * MS);
    assert_int_equal(share_roundtrip(&trip, NOW + 160 * MS), 90 * MS);
}

static void without_answers_it_is_halved(void **state)
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

static void an_answer_at_once_is_an_answer(void **state)
{
    struct share_roundtrip trip = {0};

    share_roundtrip_note(&trip, NOW, NOW);
    assert_int_equal(trip.smoothed_ns, 1);
    assert_int_equal(share_roundtrip(&trip, NOW), 1);
}

static void a_clock_that_goes_back_is_of_no_effect(void **state)
{
    struct share_roundtrip trip = {.least_ns = MS};

    share_roundtrip_note(&trip, NOW, NOW - 1);
    assert_int_equal(trip.smoothed_ns, 0);
    share_roundtrip_note(&trip, NOW - 80 * MS, NOW);
    assert_int_equal(share_roundtrip(&trip, NOW - OLD), 80 * MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(before_the_first_answer_it_is_the_least),
        cmocka_unit_test(the_first_counts_in_full_and_later_ones_by_an_eighth),
        cmocka_unit_test(without_answers_it_is_halved),
        cmocka_unit_test(an_answer_at_once_is_an_answer),
        cmocka_unit_test(a_clock_that_goes_back_is_of_no_effect),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
