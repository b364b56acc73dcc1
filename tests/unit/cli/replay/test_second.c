/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of one second, spread over it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/replay/second.h"
#include "failing_memory.h"

#include <weir/error.h>

static struct replay_line line_of(const char *text)
{
    static char buffer[256];

    snprintf(buffer, sizeof buffer, "%s", text);
    return (struct replay_line){
        .text = buffer, .size = strlen(text), .file = "f", .format = REPLAY_ACCESS_LOG};
}

static void lines_of_one_second_come_back_in_order_with_their_places(void **state)
{
    static const char *const texts[] = {"a - - [07/Mar/2004:16:05:49 -0800] one",
                                        "b - - [07/Mar/2004:16:05:49 -0800] two",
                                        "c - - [07/Mar/2004:16:05:49 -0800]"};
    struct replay_second *second = replay_second_open();
    struct replay_line line;

    for (int round = 0; round < 2; round++) { /* it can be used again */
        for (uint32_t i = 0; i < 3; i++) {
            line = line_of(texts[i]);
            line.number = i + 1;
            assert_true(replay_second_takes(second, &line));
            assert_int_equal(replay_second_add(second, &line), 0);
        }
        line = line_of("d - - [07/Mar/2004:16:05:50 -0800]");
        assert_false(replay_second_takes(second, &line));
        for (uint32_t i = 0; i < 3; i++) {
            assert_true(replay_second_next(second, &line));
            assert_int_equal(line.place, i);
            assert_int_equal(line.of, 3);
            assert_int_equal(line.number, i + 1);
            assert_int_equal(line.size, strlen(texts[i]));
            assert_memory_equal(line.text, texts[i], line.size);
        }
        assert_false(replay_second_next(second, &line));
    }
    replay_second_close(second);
}

static void what_has_no_time_of_a_log_is_no_part_of_a_second(void **state)
{
    static const char *const texts[] = {
        "",        "no brackets",
        "[",       "[]",
        "a ] [ b", "[0123456789012345678901234567890123456789012345678901234567890123456789]"};
    struct replay_second *second = replay_second_open();

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct replay_line line = line_of(texts[i]);
        assert_false(replay_second_takes(second, &line));
    }
    struct replay_line json = line_of("{\"t\": 1, \"path\": \"/[x]\"}");
    json.format = REPLAY_JSONL;
    assert_false(replay_second_takes(second, &json));
    replay_second_close(second);
}

static void a_second_is_cut_where_it_would_have_no_end(void **state)
{
    struct replay_second *second = replay_second_open();
    struct replay_line line = line_of("[t]");

    for (uint32_t i = 0; i < SECOND_LINES_MAX; i++) {
        assert_true(replay_second_takes(second, &line));
        assert_int_equal(replay_second_add(second, &line), 0);
    }
    assert_false(replay_second_takes(second, &line));
    for (uint32_t i = 0; i < SECOND_LINES_MAX; i++)
        assert_true(replay_second_next(second, &line));
    assert_false(replay_second_next(second, &line));

    char *large = calloc(1, REPLAY_LINE_MAX);
    memcpy(large, "[t]", 3);
    line =
        (struct replay_line){.text = large, .size = REPLAY_LINE_MAX, .format = REPLAY_ACCESS_LOG};
    uint32_t count = 0;
    for (; replay_second_takes(second, &line); count++)
        assert_int_equal(replay_second_add(second, &line), 0);
    assert_int_equal(count, SECOND_BYTES_MAX / REPLAY_LINE_MAX + 1);
    free(large);
    replay_second_close(second);
}

static void without_memory_a_line_is_refused_and_the_others_stay(void **state)
{
    struct replay_line line = line_of("[t] x"), given;

    failing_memory_after(0);
    assert_null(replay_second_open());
    assert_true(failing_memory_stop());
    for (long fails = 0; fails < 2; fails++) {
        struct replay_second *second = replay_second_open();
        failing_memory_after(fails);
        assert_int_equal(replay_second_add(second, &line), WEIR_ERR_MEMORY);
        assert_true(failing_memory_stop());
        assert_int_equal(replay_second_add(second, &line), 0);
        assert_true(replay_second_next(second, &given));
        assert_false(replay_second_next(second, &given));
        replay_second_close(second);
    }
    replay_second_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_of_one_second_come_back_in_order_with_their_places),
        cmocka_unit_test(what_has_no_time_of_a_log_is_no_part_of_a_second),
        cmocka_unit_test(a_second_is_cut_where_it_would_have_no_end),
        cmocka_unit_test(without_memory_a_line_is_refused_and_the_others_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
