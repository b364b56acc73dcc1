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
#include "test.h"

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

static struct weir_rules *load(const char *limits)
{
    struct weir_rules *rules;
    struct weir_problems problems = {0};
    char text[512];
    int length = snprintf(text, sizeof text, "version: 1\nlimits:\n%s", limits);
    int error = weir_rules_parse(&rules, "rules", ".", text, (size_t)length, &problems);
    weir_problems_free(&problems);
    assert_int_equal(error, 0);
    return rules;
}

static struct replay_state_size size;

TEST("a short trace gets what a server gets")
{
    struct weir_rules *rules = load("  - {name: a, key: [user], algorithm: gcra, rate: 5/s}\n");
    size = replay_state_size(rules, 0, 1000, 16 * GIB);
    assert_int_equal(size.bytes_max, 64 * MIB);
    assert_int_equal(size.span_percent, 0);
    size = replay_state_size(rules, 0, 1000, 0); /* memory unknown */
    assert_int_equal(size.bytes_max, 64 * MIB);
    weir_rules_unref(rules);
}

TEST("a long trace gets room for a key a line up to a quarter of memory")
{
    struct weir_rules *rules = load("  - {name: a, key: [user], algorithm: gcra, rate: 5/s}\n");
    size = replay_state_size(rules, 0, 256 * MIB, 16 * GIB);
    assert_in_range(size.bytes_max, 4 * MIB * 28, GIB); /* 4 Mi lines */
    size = replay_state_size(rules, 0, 1000 * GIB, 16 * GIB);
    assert_int_equal(size.bytes_max, 4 * GIB);
    size = replay_state_size(rules, 0, UINT64_MAX, UINT64_MAX);
    assert_int_equal(size.bytes_max, WEIR_TABLE_BYTES_MAX);
    weir_rules_unref(rules);
}

TEST("large states get their share")
{
    struct weir_rules *rules =
        load("  - {name: a, key: [user], algorithm: sliding_log, rate: 1000/s}\n"
             "  - {name: b, key: [user], algorithm: gcra, rate: 5/s}\n");
    size = replay_state_size(rules, 0, MIB, 16 * GIB);
    assert_int_equal(size.bytes_max,
                     64 * MIB); /* a line is an event at most, whatever a log may hold */
    assert_in_range(size.span_percent, 30, 60);
    size = replay_state_size(rules, 0, 256 * MIB, 16 * GIB);
    assert_in_range(size.bytes_max, 4 * MIB * 128, 4 * GIB); /* 4 Mi lines */
    weir_rules_unref(rules);
    rules = load("  - {name: a, key: [user], rate: 10/s, segments: 10}\n"
                 "  - {name: b, key: [user], algorithm: gcra, rate: 5/s}\n");
    size = replay_state_size(rules, 0, MIB, 16 * GIB);
    assert_in_range(size.span_percent, 30, 70);
    weir_rules_unref(rules);
}

TEST("what the user asks for is taken")
{
    struct weir_rules *rules = load("  - {name: a, key: [user], algorithm: gcra, rate: 5/s}\n");
    size = replay_state_size(rules, MIB, 1000 * GIB, 16 * GIB);
    assert_int_equal(size.bytes, MIB);
    assert_int_equal(size.bytes_max, MIB);
    weir_rules_unref(rules);
}

TEST("a table begins small and not beyond its bound")
{
    struct weir_rules *rules = load("  - {name: a, key: [user], algorithm: gcra, rate: 5/s}\n");
    size = replay_state_size(rules, 0, 1000 * MIB, 16 * GIB);
    assert_int_equal(size.bytes, 8 * MIB);
    weir_rules_unref(rules);
    rules = load("  - {name: a, key: [user], algorithm: sliding_log, rate: 1000/s}\n");
    size = replay_state_size(rules, 0, 1000, 16 * GIB);
    assert_int_equal(size.bytes, 64 * MIB);
    assert_int_equal(size.bytes_max, 64 * MIB);
    weir_rules_unref(rules);
}

TEST("states move until the bound and losses are kept")
{
    static const uint64_t secret[2] = {1, 2};
    struct weir_reason reason;
    struct replay_state grown;
    const struct replay_state_size sizes = {.bytes = MIB, .bytes_max = 6 * MIB, .states = 4};
    assert_int_equal(replay_state_open(&grown, &sizes, secret, &reason), 0);
    assert_true(replay_state_is_due(&grown, 0));
    assert_int_equal(replay_state_grow(&grown, 0, 1, secret), 0); /* it is empty */
    assert_true(grown.look_at > 1000 && grown.look_at < 8 * MIB / 128);
    assert_true(replay_state_enlarge(&grown, secret));
    assert_int_equal(weir_table_bytes(grown.table), 4 * MIB);
    assert_true(replay_state_enlarge(&grown, secret));
    assert_int_equal(weir_table_bytes(grown.table), 6 * MIB);
    assert_false(replay_state_enlarge(&grown, secret));
    assert_int_equal(replay_state_grow(&grown, 5, 1, secret), 0);
    assert_int_equal(grown.look_at, UINT64_MAX);
    struct weir_table_stats stats;
    grown.evictions = 3;
    replay_state_stats(&grown, 1, &stats);
    assert_int_equal(stats.evictions, 3);
    replay_state_close(&grown);
}

TEST("files count with their size and pipes with a guess")
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

RUN_TESTS()
