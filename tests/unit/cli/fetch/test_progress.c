/* SPDX-License-Identifier: Apache-2.0 */
/* The line of progress: its parts, its width, and no division by zero. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/fetch/progress.h"
#include "test.h"

#define S UINT64_C(1000000000)

TEST("the line says rate remaining retries and time left")
{
    char text[FETCH_PROGRESS_MAX];
    struct fetch_progress progress = {.total = 100,
                                      .done = 40,
                                      .failed = 1,
                                      .retries = 3,
                                      .elapsed_ns = 4 * S,
                                      .limit = {100, 37, S, 0}};

    fetch_progress_text(&progress, 200, text);
    assert_string_equal(text, "[########............] 40/100  10.0/s  limit: 37 of 100 left  "
                              "3 retries  1 failed  6s left");
}

TEST("at the start and the end nothing is made up")
{
    char text[FETCH_PROGRESS_MAX];
    struct fetch_progress progress = {.total = 0, .limit.remaining = WEIR_CLIENT_UNKNOWN};

    fetch_progress_text(&progress, 200, text);
    assert_string_equal(text, "[....................] 0/0  0.0/s");
    progress.total = progress.done = 5;
    progress.elapsed_ns = S;
    fetch_progress_text(&progress, 200, text);
    assert_string_equal(text, "[####################] 5/5  5.0/s");
}

TEST("the line is cut to the terminal")
{
    char text[FETCH_PROGRESS_MAX];
    struct fetch_progress progress = {.total = UINT64_MAX,
                                      .done = UINT64_MAX / 30,
                                      .failed = UINT64_MAX,
                                      .retries = UINT64_MAX,
                                      .elapsed_ns = 1,
                                      .limit = {UINT64_MAX - 1, UINT64_MAX - 1, 0, 0}};

    for (unsigned width = 1; width < 400; width++) {
        fetch_progress_text(&progress, width, text);
        assert_true(strlen(text) <= width && strlen(text) < FETCH_PROGRESS_MAX);
    }
}

RUN_TESTS()
