/* SPDX-License-Identifier: Apache-2.0 */
/* The line of progress of a replay. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cli/replay/progress.h"
#include "test.h"

#define S UINT64_C(1000000000)

static void assert_text(const char *expected, uint64_t lines, uint64_t taken, uint64_t total,
                        uint64_t elapsed_ns)
{
    char text[REPLAY_PROGRESS_MAX];
    assert_string_equal(replay_progress_text(text, "replay", lines, taken, total, elapsed_ns),
                        expected);
}

TEST("the line has rate share and the time left")
{
    assert_text("replay: 12,400,000 lines  3.1 M/s  40 %  6s left", 12400000, 40, 100, 4 * S);
    assert_text("replay: 999 lines  1 k/s  100 %", 999, 100, 100, S);
    assert_text("replay: 5,000 lines  5 k/s", 5000, 0, 0, S); /* a pipe */
    assert_text("replay: 0 lines  0 k/s  0 %", 0, 0, 100, S);
    assert_text("replay: 10 lines  0 k/s  100 %", 10, 200, 100, S); /* it has grown */
}

TEST("the greatest numbers fit")
{
    char text[REPLAY_PROGRESS_MAX];
    replay_progress_text(text, "a word that is too long to be shown", UINT64_MAX, 1, UINT64_MAX, 1);
    assert_in_range(strlen(text), 40, REPLAY_PROGRESS_MAX - 1);
}

RUN_TESTS()
