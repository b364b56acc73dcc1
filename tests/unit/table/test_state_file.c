/* SPDX-License-Identifier: Apache-2.0 */
/* What is said of a region's file: what has become of it, whether it has room; and beginning a file
 * with what a table holds. */
#include "table_test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "table/state_file.h"

#define SIZE (UINT64_C(1) << 20)
#define ROOM 32 /* limits, of a region of that size */

static char folder[] = "/tmp/weir-state-file-XXXXXX";
static char path[64], moved[64];

static int make_folder(void **state)
{
    if (mkdtemp(folder) == NULL)
        return -1;
    snprintf(path, sizeof path, "%s/state", folder);
    snprintf(moved, sizeof moved, "%s/moved", folder);
    return 0;
}

static int remove_folder(void **state)
{
    return rmdir(folder);
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
    expect_room(4 * SIZE, true, 2 * ROOM + 1, 0, ""); /* it will be made anew, larger */
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
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
