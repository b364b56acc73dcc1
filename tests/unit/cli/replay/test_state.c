/* SPDX-License-Identifier: Apache-2.0 */
/* The guess of how large a table a replay needs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/replay/state.h"
#include "table/table.h"
#include "temporary.h"

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

static struct weir_rules *load(const char *limits)
{
    struct weir_rules *rules;
    struct weir_problems problems = {0};
    char text[512];
    int size = snprintf(text, sizeof text, "version: 1\nlimits:\n%s", limits);
    int error = weir_rules_parse(&rules, "rules", ".", text, (size_t)size, &problems);
    weir_problems_free(&problems);
    assert_int_equal(error, 0);
    return rules;
}

static void a_short_trace_gets_what_a_server_gets(void **state)
{
    struct weir_rules *rules = load("  - {name: a, key: [user], algorithm: gcra, rate: 5/s}\n");
    uint64_t bytes;
    uint32_t percent;
    replay_state_size(rules, 0, 1000, 16 * GIB, &bytes, &percent);
    assert_int_equal(bytes, 64 * MIB);
    assert_int_equal(percent, 0);
    replay_state_size(rules, 0, 1000, 0, &bytes, &percent); /* memory unknown */
    assert_int_equal(bytes, 64 * MIB);
    weir_rules_unref(rules);
}

static void a_long_trace_gets_room_for_a_key_a_line_up_to_a_quarter_of_memory(void **state)
{
    struct weir_rules *rules = load("  - {name: a, key: [user], algorithm: gcra, rate: 5/s}\n");
    uint64_t bytes;
    uint32_t percent;
    replay_state_size(rules, 0, 256 * MIB, 16 * GIB, &bytes, &percent);
    assert_in_range(bytes, 4 * MIB * 28, GIB); /* 4 Mi lines */
    replay_state_size(rules, 0, 1000 * GIB, 16 * GIB, &bytes, &percent);
    assert_int_equal(bytes, 4 * GIB);
    replay_state_size(rules, 0, UINT64_MAX, UINT64_MAX, &bytes, &percent);
    assert_int_equal(bytes, WEIR_TABLE_BYTES_MAX);
    weir_rules_unref(rules);
}

static void large_states_get_their_share(void **state)
{
    struct weir_rules *rules =
        load("  - {name: a, key: [user], algorithm: sliding_log, rate: 1000/s}\n"
             "  - {name: b, key: [user], algorithm: gcra, rate: 5/s}\n");
    uint64_t bytes;
    uint32_t percent;
    replay_state_size(rules, 0, MIB, 16 * GIB, &bytes, &percent);
    assert_int_equal(bytes, 64 * MIB); /* a line is an event at most, whatever a log may hold */
    assert_in_range(percent, 30, 60);
    replay_state_size(rules, 0, 256 * MIB, 16 * GIB, &bytes, &percent);
    assert_in_range(bytes, 4 * MIB * 128, 4 * GIB); /* 4 Mi lines */
    weir_rules_unref(rules);
    rules = load("  - {name: a, key: [user], rate: 10/s, segments: 10}\n"
                 "  - {name: b, key: [user], algorithm: gcra, rate: 5/s}\n");
    replay_state_size(rules, 0, MIB, 16 * GIB, &bytes, &percent);
    assert_in_range(percent, 30, 70);
    weir_rules_unref(rules);
}

static void what_the_user_asks_for_is_taken(void **state)
{
    struct weir_rules *rules = load("  - {name: a, key: [user], algorithm: gcra, rate: 5/s}\n");
    uint64_t bytes;
    uint32_t percent;
    replay_state_size(rules, MIB, 1000 * GIB, 16 * GIB, &bytes, &percent);
    assert_int_equal(bytes, MIB);
    weir_rules_unref(rules);
}

static void files_count_with_their_size_and_pipes_with_a_guess(void **state)
{
    char path[TEMPORARY_MAX];
    int fd = temporary_file(path);
    assert_int_equal(ftruncate(fd, 1000), 0);
    close(fd);
    const char *const files[] = {path, path, "-", "/dev/null"};
    assert_int_equal(replay_state_trace_bytes(files, 2), 2000);
    assert_int_equal(replay_state_trace_bytes(files, 3), 2000 + 64 * MIB);
    assert_int_equal(replay_state_trace_bytes(files, 4), 2000 + 128 * MIB);
    temporary_remove(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_short_trace_gets_what_a_server_gets),
        cmocka_unit_test(a_long_trace_gets_room_for_a_key_a_line_up_to_a_quarter_of_memory),
        cmocka_unit_test(large_states_get_their_share),
        cmocka_unit_test(what_the_user_asks_for_is_taken),
        cmocka_unit_test(files_count_with_their_size_and_pipes_with_a_guess),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
