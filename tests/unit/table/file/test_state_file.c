/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of a region's file: what has become of it, whether it has room; and beginning a
 * file with what a table holds. */
#include "../table_test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "table/file/state_file.h"
#include "temporary.h"

#define SIZE (UINT64_C(1) << 20)
#define ROOM 32 /* limits, of a region of that size */

static char folder[TEMPORARY_MAX];
static char path[TEMPORARY_MAX + 8], moved[TEMPORARY_MAX + 8];

static int make_folder(void **state)
{
    temporary_folder(folder);
    snprintf(path, sizeof path, "%s/state", folder);
    snprintf(moved, sizeof moved, "%s/moved", folder);
    return 0;
}

static int remove_folder(void **state)
{
    temporary_remove(folder);
    return 0;
}

static int remove_files(void **state)
{
    unlink(path);
    unlink(moved);
    return 0;
}

static const struct weir_limit_spec ten_an_hour = {
    .algorithm = WEIR_GCRA, .rate = 10, .window_ns = 60 * MINUTE};

static struct weir_table *open_file(const struct weir_table *copy_of, uint64_t boot_ns)
{
    return open_table(&(struct weir_table_options){
        .path = path, .bytes = SIZE, .copy_of = copy_of, .boot_ns = boot_ns});
}

static void expect_state(const struct weir_table *table, enum weir_table_file state)
{
    assert_int_equal(weir_table_file_state(table), state);
}

static void what_becomes_of_an_open_file_is_seen(void **state)
{
    struct weir_table *table = open_file(NULL, 0), *other;

    expect_state(table, WEIR_TABLE_FILE_OURS);
    assert_int_equal(rename(path, moved), 0);
    expect_state(table, WEIR_TABLE_FILE_GONE);
    other = open_file(NULL, 0);
    expect_state(table, WEIR_TABLE_FILE_OTHER);
    expect_state(other, WEIR_TABLE_FILE_OURS);
    assert_int_equal(rename(moved, path), 0);
    expect_state(table, WEIR_TABLE_FILE_OURS);
    expect_state(other, WEIR_TABLE_FILE_OTHER);
    assert_int_equal(symlink(path, moved), 0);
    expect_state(table, WEIR_TABLE_FILE_OURS);
    weir_table_close(other);
    assert_int_equal(truncate(path, SIZE - 1), 0);
    expect_state(table, WEIR_TABLE_FILE_CUT);
    weir_table_close(table);

    struct weir_table *private = open_private_table(SIZE);

    expect_state(private, WEIR_TABLE_FILE_OURS);
    weir_table_close(private);
}

static void a_header_that_is_overwritten_is_seen_and_followed_nowhere(void **state)
{
    struct weir_table *table = open_file(NULL, 0);
    struct weir_table_owner *owner = attach(table);
    struct weir_limit limit = make_limit(table, ten_an_hour);
    struct weir_table_stats before, after;
    const uint64_t secret[2] = {weir_table_secret(table)[0], weir_table_secret(table)[1]};
    unsigned char ones[176];
    int fd = open(path, O_RDWR | O_CLOEXEC);

    for (uint64_t key = 0; key < 100; key++)
        assert_true(decide_key(table, owner, &limit, key, 10, START));
    weir_table_stats(table, START, &before);
    memset(ones, 0xff, sizeof ones);
    assert_int_equal(pwrite(fd, ones, sizeof ones, 0), sizeof ones);
    expect_state(table, WEIR_TABLE_FILE_OVERWRITTEN);
    weir_table_stats(table, START, &after);
    assert_memory_equal(&before, &after, sizeof before);
    assert_memory_equal(weir_table_secret(table), secret, sizeof secret);
    for (uint64_t key = 0; key < 100; key++)
        assert_false(decide_key(table, owner, &limit, key, 1, START));
    weir_table_detach(owner);
    weir_table_close(table);
    close(fd);
}

static void every_byte_of_the_fixed_header_is_watched(void **state)
{
    struct weir_table *table = open_file(NULL, 0);
    int fd = open(path, O_RDWR | O_CLOEXEC);

    for (off_t at = 0; at < 136; at++) {
        unsigned char byte, flipped;

        assert_int_equal(pread(fd, &byte, 1, at), 1);
        flipped = byte ^ 1;
        assert_int_equal(pwrite(fd, &flipped, 1, at), 1);
        expect_state(table, WEIR_TABLE_FILE_OVERWRITTEN);
        assert_int_equal(pwrite(fd, &byte, 1, at), 1);
        expect_state(table, WEIR_TABLE_FILE_OURS);
    }
    weir_table_close(table);
    close(fd);
}

static void a_file_that_is_gone_begins_again_with_what_a_table_holds(void **state)
{
    struct weir_table *table = open_file(NULL, 1000 * SECOND);
    struct weir_table_owner *owner = attach(table);
    struct weir_limit limit = make_limit(table, ten_an_hour);
    uint64_t before_ns;

    assert_true(decide_key(table, owner, &limit, 7, 10, START));
    assert_false(decide_key(table, owner, &limit, 7, 1, START));
    weir_table_detach(owner);
    unlink(path);
    before_ns = weir_table_time(table, 1060 * SECOND);

    struct weir_table *again = open_file(table, 1060 * SECOND);

    expect_state(table, WEIR_TABLE_FILE_OTHER);
    expect_state(again, WEIR_TABLE_FILE_OURS);
    assert_memory_equal(weir_table_secret(again), weir_table_secret(table), 16);
    assert_true(weir_table_time(again, 1060 * SECOND) >= before_ns); /* time does not go back */
    weir_table_close(table);
    validate(again);
    owner = attach(again);
    limit = make_limit(again, ten_an_hour);
    assert_false(decide_key(again, owner, &limit, 7, 1, START));
    assert_true(decide_key(again, owner, &limit, 8, 1, START));
    weir_table_detach(owner);
    weir_table_close(again);
}

static void a_file_that_is_there_is_opened_instead(void **state)
{
    struct weir_table *table = open_file(NULL, 0), *other, *again;
    struct weir_table_owner *owner = attach(table);
    struct weir_limit limit = make_limit(table, ten_an_hour);

    assert_true(decide_key(table, owner, &limit, 7, 10, START));
    weir_table_detach(owner);
    unlink(path);
    other = open_file(NULL, 0);
    again = open_file(table, 0);
    assert_memory_equal(weir_table_secret(again), weir_table_secret(other), 16);
    owner = attach(again);
    limit = make_limit(again, ten_an_hour);
    assert_true(decide_key(again, owner, &limit, 7, 10, START));
    weir_table_detach(owner);
    weir_table_close(again);
    weir_table_close(other);
    weir_table_close(table);
}

static void expect_room(uint64_t bytes, bool file, uint32_t limits, int err, const char *part)
{
    const struct weir_table_options options = {.path = file ? path : NULL, .bytes = bytes};
    struct weir_reason reason;

    assert_int_equal(weir_table_check_room(&options, limits, limits, &reason), err);
    if (strstr(reason.text, part) == NULL)
        fail_msg("%s", reason.text);
    assert_int_equal(weir_table_check_room(&options, limits, limits, NULL), err);
}

static void room_is_that_of_the_region_that_would_be_opened(void **state)
{
    struct weir_table *table;
    struct stat before, after;

    expect_room(SIZE, false, ROOM, 0, "");
    expect_room(SIZE, false, ROOM + 1, WEIR_ERR_FULL, "33 distinct limits");
    expect_room(SIZE, false, ROOM + 1, WEIR_ERR_FULL, "1MiB has room for 32; raise state.size");
    expect_room(SIZE << 9, false, WEIR_TABLE_PARAMS_MAX, 0, "");
    expect_room(SIZE << 10, false, WEIR_TABLE_PARAMS_MAX + 1, WEIR_ERR_FULL, "give fewer");
    expect_room(1, false, 1, WEIR_ERR_RANGE, "256KiB");
    expect_room(SIZE, true, ROOM, 0, "");
    assert_int_equal(access(path, F_OK), -1); /* asking makes no file */

    table = open_table(
        &(struct weir_table_options){.path = path, .bytes = SIZE, .params_max = 2 * ROOM});
    assert_int_equal(stat(path, &before), 0);
    expect_room(SIZE, true, 2 * ROOM, 0, ""); /* also while it is in use */
    expect_room(SIZE, true, 2 * ROOM + 1, WEIR_ERR_FULL, "room for 64");
    expect_room(4 * SIZE, true, 2 * ROOM + 1, 0, ""); /* it will be recreated, larger */
    assert_int_equal(stat(path, &after), 0);
    assert_int_equal(before.st_ino, after.st_ino);
    weir_table_close(table);
}

static void a_file_that_cannot_be_opened_has_no_room(void **state)
{
    FILE *file = fopen(path, "w");
    struct weir_table_options reset = {.path = path, .bytes = SIZE, .reset = true};

    assert_non_null(file);
    fputs("foreign", file);
    fclose(file);
    expect_room(SIZE, true, 1, WEIR_ERR_FORMAT, "not a state file of weir");
    assert_int_equal(weir_table_check_room(&reset, 1, 1, NULL), 0); /* it would be replaced */
    assert_int_equal(truncate(path, 0), 0);
    expect_room(SIZE, true, 1, 0, "");
    weir_table_close(open_file(NULL, 0));
    assert_int_equal(truncate(path, SIZE / 2), 0);
    expect_room(SIZE, true, 1, WEIR_ERR_DAMAGED, "cut short");
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    expect_room(SIZE, true, 1, WEIR_ERR_FORMAT, "not a regular file");
}

/* Keys that use up a limit until one in a hundred has had to go, or has found no room. */
static uint64_t count_keys(const struct weir_limit_spec *spec)
{
    struct weir_table *table = open_table(
        &(struct weir_table_options){.bytes = 4 * SIZE, .span_percent = 40, .secret = {1, 2}});
    struct weir_table_owner *owner = attach(table);
    struct weir_limit limit = make_limit(table, *spec);
    struct weir_table_limit_stats stats;
    uint64_t key = 0;

    do {
        for (uint64_t i = 0; i < spec->rate; i++)
            decide_key(table, owner, &limit, key, 1, START + i);
        weir_table_limit_stats(table, NULL, &stats);
        key++;
    } while ((stats.evictions + stats.overflows) * 100 < key);
    weir_table_detach(owner);
    weir_table_close(table);
    return key;
}

static void about_as_many_keys_find_room_as_is_said(void **state)
{
    static const uint64_t bounds[] = {START - MINUTE, START + 60 * MINUTE, START + 120 * MINUTE};
    const struct weir_limit_spec specs[] = {
        {.algorithm = WEIR_GCRA, .rate = 3, .window_ns = 60 * MINUTE},
        {.algorithm = WEIR_SLIDING_LOG, .rate = 5, .window_ns = 60 * MINUTE},
        {.algorithm = WEIR_SLIDING_LOG, .rate = 100, .window_ns = 60 * MINUTE},
        {.algorithm = WEIR_SLIDING_LOG, .rate = 3000, .window_ns = 60 * MINUTE},
        {.algorithm = WEIR_CONCURRENCY, .rate = 40, .window_ns = 60 * MINUTE},
        {.algorithm = WEIR_SLIDING_WINDOW, .rate = 9, .window_ns = 60 * MINUTE, .segments = 60},
        {.algorithm = WEIR_QUOTA,
         .rate = 9,
         .window_ns = 60 * MINUTE,
         .calendar = 1,
         .bounds = bounds,
         .bound_count = 3},
    };
    const struct weir_table_options options = {.bytes = 4 * SIZE, .span_percent = 40};
    struct weir_table_capacity capacity;

    assert_int_equal(weir_table_plan_capacity(&options, &capacity, NULL), 0);
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        struct weir_limit limits[2];

        assert_int_equal(weir_limit_init(&limits[0], &specs[i], NULL), 0);
        limits[1] = limits[0];

        uint64_t result = weir_table_keys_of(&capacity, limits, 1), found = count_keys(&specs[i]);

        print_message("%zu: result %lu, found %lu\n", i, (unsigned long)result,
                      (unsigned long)found);
        assert_in_range(found, result / 2, result * 3 / 2);
        assert_in_range(weir_table_keys_of(&capacity, limits, 2), result / 2 - 1, result / 2);
    }
}

/* Keys of a new table of `size` that use up their limits, every second one another limit, if there
 * are two. Returns those that were evicted or found no room. */
static uint64_t lose_keys(uint64_t keys, uint64_t size, uint32_t span_percent,
                          const struct weir_limit_spec *specs, uint32_t count)
{
    struct weir_table *table = open_table(&(struct weir_table_options){
        .bytes = size, .span_percent_new = span_percent, .secret = {1, 2}});
    struct weir_table_owner *owner = attach(table);
    struct weir_table_limit_stats stats;
    struct weir_limit limits[2];

    for (uint32_t i = 0; i < count; i++)
        limits[i] = make_limit(table, specs[i]);
    for (uint64_t key = 0; key < keys; key++)
        for (uint64_t i = 0; i < specs[key % count].rate; i++)
            decide_key(table, owner, &limits[key % count], key, 1, START + i);
    weir_table_limit_stats(table, NULL, &stats);
    weir_table_detach(owner);
    weir_table_close(table);
    return stats.evictions + stats.overflows;
}

/* What `weir capacity --keys` prints is full to nine tenths, from the limits' parts. */
static void nine_tenths_of_these_keys_find_room(void **state)
{
    const struct weir_limit_spec specs[] = {
        {.algorithm = WEIR_GCRA, .rate = 3, .window_ns = 60 * MINUTE},
        {.algorithm = WEIR_SLIDING_LOG, .rate = 5, .window_ns = 60 * MINUTE},
        {.algorithm = WEIR_SLIDING_LOG, .rate = 100, .window_ns = 60 * MINUTE},
        {.algorithm = WEIR_CONCURRENCY, .rate = 10, .window_ns = 60 * MINUTE},
        {.algorithm = WEIR_SLIDING_WINDOW, .rate = 9, .window_ns = 60 * MINUTE, .segments = 10},
    };

    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        for (size_t j = i; j <= i + 1 && j < sizeof specs / sizeof *specs; j++) {
            const struct weir_limit_spec both[2] = {specs[i], specs[j]};
            /* As weir_rules_span_percent chooses it. */
            const uint32_t percent = j == 0 ? 2 : i == 0 ? 26 : 50;
            const struct weir_table_options options = {.bytes = 4 * SIZE,
                                                       .span_percent_new = percent};
            struct weir_table_capacity capacity;
            struct weir_limit limit;
            double part = 0;

            assert_int_equal(weir_table_plan_capacity(&options, &capacity, NULL), 0);
            for (int one = 0; one < 2; one++) {
                assert_int_equal(weir_limit_init(&limit, &both[one], NULL), 0);
                part += 0.5 / (double)weir_table_keys_of(&capacity, &limit, 1);
            }

            uint64_t keys = (uint64_t)(0.9 / part);

            assert_in_range(lose_keys(keys, 4 * SIZE, percent, both, 2), 0, keys / 1000 + 1);
            if (i == j)
                assert_true(lose_keys(2 * keys, 4 * SIZE, percent, both, 1) > keys / 4);
        }
    }
}

/* Of a file that is there, its size and share of spans count, as far as they stay. */
static void the_capacity_is_that_of_the_region_that_would_be_opened(void **state)
{
    struct weir_table_options options = {.path = path, .bytes = SIZE, .span_percent_new = 50};
    struct weir_table_capacity planned, larger, open;
    struct weir_table *table;

    assert_int_equal(weir_table_plan_capacity(&options, &planned, NULL), 0);
    assert_int_equal(access(path, F_OK), -1);
    assert_in_range(planned.span_bytes, SIZE * 48 / 100, SIZE / 2);
    table = open_table(&options);
    weir_table_capacity(table, &open);
    assert_memory_equal(&open, &planned, sizeof open);

    options.span_percent_new = 10; /* which the file does not ask for any more */
    assert_int_equal(weir_table_plan_capacity(&options, &planned, NULL), 0);
    assert_memory_equal(&open, &planned, sizeof open);
    options.bytes = 2 * SIZE;
    assert_int_equal(weir_table_plan_capacity(&options, &larger, NULL), 0);
    assert_in_range(larger.span_bytes, SIZE * 96 / 100, SIZE);
    options.span_percent = 20;
    assert_int_equal(weir_table_plan_capacity(&options, &larger, NULL), 0);
    assert_in_range(larger.span_bytes, SIZE * 38 / 100, SIZE * 40 / 100);
    weir_table_close(table);

    assert_int_equal(truncate(path, SIZE / 2), 0);
    assert_int_equal(weir_table_plan_capacity(&options, &larger, NULL), WEIR_ERR_DAMAGED);
    options.reset = true;
    assert_int_equal(weir_table_plan_capacity(&options, &larger, NULL), 0);
}

#define CASE(name) cmocka_unit_test_teardown(name, remove_files)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(what_becomes_of_an_open_file_is_seen),
        CASE(a_header_that_is_overwritten_is_seen_and_followed_nowhere),
        CASE(every_byte_of_the_fixed_header_is_watched),
        CASE(a_file_that_is_gone_begins_again_with_what_a_table_holds),
        CASE(a_file_that_is_there_is_opened_instead),
        CASE(room_is_that_of_the_region_that_would_be_opened),
        CASE(a_file_that_cannot_be_opened_has_no_room),
        CASE(about_as_many_keys_find_room_as_is_said),
        CASE(nine_tenths_of_these_keys_find_room),
        CASE(the_capacity_is_that_of_the_region_that_would_be_opened),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
