/* SPDX-License-Identifier: Apache-2.0 */
/* Pauses that double. */
#include "base/backoff.h"

#include "test.h"

TEST("a pause doubles up to the most, and stays there")
{
    static const uint64_t pauses[] = {50, 100, 200, 400, 500, 500, 500};
    uint64_t pause = 50;

    for (unsigned i = 0; i < 7; i++) {
        assert_int_equal(pause, pauses[i]);
        assert_int_equal(weir_backoff_after(i, 50, 500), pauses[i]);
        pause = weir_backoff_longer(pause, 500);
    }
}

TEST("any number of failures and the largest pauses do not overflow")
{
    assert_int_equal(weir_backoff_after(UINT32_MAX, 1, UINT64_MAX), UINT64_MAX);
    assert_int_equal(weir_backoff_longer(UINT64_MAX, UINT64_MAX), UINT64_MAX);
    assert_int_equal(weir_backoff_longer(UINT64_MAX / 2 - 1, UINT64_MAX), UINT64_MAX - 3);
    assert_int_equal(weir_backoff_after(0, 7, 5), 5);
    assert_int_equal(weir_backoff_after(3, 5, 5), 5);
}

RUN_TESTS()
