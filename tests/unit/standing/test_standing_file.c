/* SPDX-License-Identifier: Apache-2.0 */
/* The file of a map of standing: other processes, restarts, kill -9, and files that are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "feature/standing/layout.h"
#include "standing_test.h"
#include "temporary.h"
#include "test.h"

static char folder[TEMPORARY_MAX], path[TEMPORARY_MAX + 16];

static int in_a_folder(void **state)
{
    temporary_folder(folder);
    snprintf(path, sizeof path, "%s/standing.map", folder);
    return 0;
}

static int remove_folder(void **state)
{
    temporary_remove(folder);
    return 0;
}

static int create(struct weir_standing **map, size_t entries_max, struct weir_reason *reason)
{
    struct weir_standing_options options = {.path = path, .entries_max = entries_max};

    return weir_standing_create(map, &options, reason);
}

TEST_WITH(in_a_folder, remove_folder, "test another handle reads what the writer sets")
{
    struct weir_standing *writer = NULL, *reader = NULL;
    struct weir_reason reason = {""};

    assert_int_equal(weir_standing_open(&reader, path, &reason), WEIR_ERR_NOT_FOUND);
    assert_null(reader);
    assert_int_equal(create(&writer, 100, &reason), 0);
    assert_int_equal(weir_standing_open(&reader, path, &reason), 0);
    assert_false(weir_standing_any(reader));
    assert_int_equal(
        set_user(writer, 1, entry(WEIR_STANDING_SUSPENDED, WEIR_STANDING_BY_OPERATOR, 9 * S, "x")),
        0);
    assert_true(weir_standing_any(reader));
    assert_int_equal(user_level(reader, 1, S), WEIR_STANDING_SUSPENDED);
    weir_standing_close(reader);
    weir_standing_close(writer);
}

TEST_WITH(in_a_folder, remove_folder, "test there is one writer")
{
    struct weir_standing *one = NULL, *two = NULL;
    struct weir_reason reason = {""};

    assert_int_equal(create(&one, 100, NULL), 0);
    assert_int_equal(create(&two, 100, &reason), WEIR_ERR_BUSY);
    assert_null(two);
    assert_non_null(strstr(reason.text, path));
    weir_standing_close(one);
    assert_int_equal(create(&two, 100, NULL), 0);
    weir_standing_close(two);
}

/* Sets users and networks from `from` on below `to`, of all origins. */
static void fill(struct weir_standing *map, uint64_t from, uint64_t to)
{
    for (uint64_t i = from; i < to; i++) {
        struct weir_cidr network = network_of(i);
        struct weir_standing_entry one =
            entry((uint8_t)(1 + i % 5), (uint8_t)(i % 3), 1000 * S + i, "a reason");

        assert_int_equal(set_user(map, i, one), 0);
        assert_int_equal(weir_standing_set_network(map, &network, &one), 0);
        network.bits = 32;
        assert_int_equal(weir_standing_set_network(map, &network, &one), 0);
    }
}

static void expect_filled(const struct weir_standing *map, uint64_t from, uint64_t to)
{
    for (uint64_t i = from; i < to; i++) {
        struct weir_standing_entry found;
        struct weir_address address = network_of(i).address;

        assert_int_equal(user_level(map, i, S), 1 + i % 5);
        address.bytes[3] = (uint8_t)(i % 3 == 0 ? 0 : 9);
        assert_true(weir_standing_find_address(map, &address, S, &found));
        assert_int_equal(found.level, 1 + i % 5);
        assert_int_equal(found.origin, i % 3);
        assert_int_equal(found.until_ns, 1000 * S + i);
        assert_int_equal(found.reason_size, 8);
        assert_memory_equal(found.reason, "a reason", 8);
    }
}

TEST_WITH(in_a_folder, remove_folder, "test a new writer takes over what is in force")
{
    struct weir_standing *map = NULL, *reader = NULL;
    struct weir_standing_stats stats;
    uint64_t secret[2], again[2];

    assert_int_equal(create(&map, 1000, NULL), 0);
    fill(map, 0, 300);
    weir_standing_secret(map, secret);
    assert_int_equal(weir_standing_open(&reader, path, NULL), 0);
    weir_standing_close(map);
    assert_false(weir_standing_replaced(reader));
    assert_int_equal(create(&map, 5000, NULL), 0);
    weir_standing_secret(map, again);
    assert_memory_equal(secret, again, sizeof secret);
    expect_filled(map, 0, 300);
    weir_standing_stats(map, &stats);
    assert_int_equal(stats.entries, 900);
    /* A reader of the file that was there continues, and finds out. */
    expect_filled(reader, 0, 300);
    assert_true(weir_standing_replaced(reader));
    weir_standing_close(reader);
    assert_int_equal(weir_standing_open(&reader, path, NULL), 0);
    assert_false(weir_standing_replaced(reader));
    expect_filled(reader, 0, 300);
    weir_standing_close(reader);
    weir_standing_close(map);
}

TEST_WITH(in_a_folder, remove_folder, "test lists that were not finished are not taken over")
{
    struct weir_standing *map = NULL;

    assert_int_equal(create(&map, 100, NULL), 0);
    weir_standing_begin_lists(map);
    assert_int_equal(
        set_user(map, 1, entry(WEIR_STANDING_WARNED, WEIR_STANDING_BY_LIST, WEIR_NEVER, "")), 0);
    weir_standing_end_lists(map);
    weir_standing_begin_lists(map);
    assert_int_equal(
        set_user(map, 2, entry(WEIR_STANDING_WARNED, WEIR_STANDING_BY_LIST, WEIR_NEVER, "")), 0);
    weir_standing_close(map);
    assert_int_equal(create(&map, 100, NULL), 0);
    assert_int_equal(user_level(map, 1, S), WEIR_STANDING_WARNED);
    assert_int_equal(user_level(map, 2, S), -1);
    weir_standing_close(map);
}

/* Writes `size` bytes of `data` at `at`, or cuts the file there when data is NULL; then expects an
 * error with that text from both who read and who write; and puts the file back. */
static void expect_refused(off_t at, const void *data, size_t size, int err, const char *text)
{
    struct weir_standing *map = NULL;
    struct weir_reason reason = {""}, writers = {""};
    int fd = open(path, O_RDWR);
    struct stat status;
    char old[64];

    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &status), 0);
    if (data) {
        assert_int_equal(pread(fd, old, size, at), size);
        assert_int_equal(pwrite(fd, data, size, at), size);
    } else {
        assert_int_equal(ftruncate(fd, at), 0);
    }
    assert_int_equal(weir_standing_open(&map, path, &reason), err);
    assert_non_null(strstr(reason.text, path));
    assert_non_null(strstr(reason.text, text));
    assert_int_equal(create(&map, 100, &writers), err);
    assert_string_equal(writers.text, reason.text);
    if (data)
        assert_int_equal(pwrite(fd, old, size, at), size);
    else
        assert_int_equal(ftruncate(fd, status.st_size), 0);
    close(fd);
}

TEST_WITH(in_a_folder, remove_folder, "test files of others and damaged ones are refused")
{
    const uint64_t other = 12345;
    const uint32_t version = STANDING_VERSION + 1;
    struct weir_standing *map = NULL;

    assert_int_equal(create(&map, 100, NULL), 0);
    weir_standing_close(map);
    expect_refused(0, &other, sizeof other, WEIR_ERR_FORMAT, "not a file of standing");
    expect_refused(8, &version, sizeof version, WEIR_ERR_FORMAT, "another version");
    expect_refused(offsetof(struct standing_header, entries_max), &other, sizeof other,
                   WEIR_ERR_DAMAGED, "damaged");
    expect_refused(5000, NULL, 0, WEIR_ERR_DAMAGED, "cut short");
    expect_refused(3, NULL, 0, WEIR_ERR_FORMAT, "not a file of standing");
}

TEST_WITH(in_a_folder, remove_folder, "test a damaged entry is refused by the next writer")
{
    struct weir_standing *map = NULL;
    struct weir_reason reason = {""};

    assert_int_equal(create(&map, 100, NULL), 0);
    assert_int_equal(
        set_user(map, 1, entry(WEIR_STANDING_WARNED, WEIR_STANDING_BY_LIST, WEIR_NEVER, "")), 0);
    ((struct standing_record *)standing_mirrored(map, map->records))->value.level = 99;
    weir_standing_close(map);
    assert_int_equal(create(&map, 100, &reason), WEIR_ERR_DAMAGED);
    assert_non_null(strstr(reason.text, path));
    assert_null(map);
}

/* Another weir serve is the writer by now, as the file was deleted and that one made its own. */
TEST_WITH(in_a_folder, remove_folder, "test the file of another writer is left alone")
{
    struct weir_standing *map = NULL, *other = NULL;
    struct weir_reason reason = {""};
    const char *cause;

    assert_int_equal(create(&map, 100, NULL), 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(create(&other, 100, NULL), 0);
    assert_int_equal(weir_standing_tend(map, &cause, &reason), WEIR_ERR_BUSY);
    assert_non_null(strstr(reason.text, "another process writes it"));
    weir_standing_close(other);
    assert_int_equal(weir_standing_tend(map, &cause, &reason), 0);
    assert_non_null(cause);
    assert_int_equal(weir_standing_tend(map, &cause, &reason), 0);
    assert_null(cause);
    weir_standing_close(map);
}

/* Each new file has a greater generation, and as much as is asked for. */
TEST_WITH(in_a_folder, remove_folder, "test generations grow")
{
    const struct weir_standing_options options = {
        .path = path, .entries_max = 100, .generation = 41};
    struct weir_standing *map = NULL;
    const char *cause;

    unlink(path);
    assert_int_equal(weir_standing_create(&map, &options, NULL), 0);
    assert_int_equal(weir_standing_generation(map), 42);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(weir_standing_tend(map, &cause, NULL), 0);
    assert_int_equal(weir_standing_generation(map), 43);
    weir_standing_close(map);
    assert_int_equal(create(&map, 100, NULL), 0);
    assert_int_equal(weir_standing_generation(map), 44);
    weir_standing_close(map);
}

/* A reader of a file with random bytes in it finds something or nothing, and comes back. */
TEST_WITH(in_a_folder, remove_folder, "test a reader survives a damaged file")
{
    struct weir_standing *map = NULL;

    assert_int_equal(create(&map, 64, NULL), 0);
    fill(map, 0, 20);
    srand(7);
    for (int round = 0; round < 30; round++) {
        for (int i = 0; i < 50; i++) {
            size_t at = offsetof(struct standing_header, entries) + (size_t)rand() % 12000;

            map->base[at] = (uint8_t)rand();
        }
        for (uint64_t i = 0; i < 30; i++) {
            struct weir_standing_entry found;
            struct weir_address address = network_of(i).address;

            user_level(map, i, S);
            weir_standing_find_address(map, &address, S, &found);
        }
    }
    weir_standing_close(map);
}

#define LASTING 100 /* users and networks that the writer never touches */
#define MOVING 200

/* Sets and clears all others until it is killed. */
static void change_for_ever(struct weir_standing *map, int ready)
{
    for (uint64_t i = 0;; i++) {
        uint64_t number = LASTING + i * 7919 % MOVING, id[2];
        struct weir_cidr network = network_of(number);

        user_id(map, number, id);
        if (i / 5 % 2) {
            weir_standing_clear(map, id, WEIR_STANDING_BY_PENALTY);
            weir_standing_clear_network(map, &network, WEIR_STANDING_BY_PENALTY);
        } else {
            struct weir_standing_entry one =
                entry((uint8_t)(1 + number % 5), WEIR_STANDING_BY_PENALTY, 9 * S + i, "moving");

            if (set_user(map, number, one) < 0 ||
                weir_standing_set_network(map, &network, &one) < 0)
                _exit(1);
        }
        if (i == 1000 && write(ready, "r", 1) != 1)
            _exit(1);
    }
}

TEST_WITH(in_a_folder, remove_folder, "test readers and the next writer go on after kill 9")
{
    for (int round = 0; round < 10; round++) {
        struct weir_standing *map = NULL, *reader = NULL;
        int ready[2], status;
        char byte;
        pid_t child;

        unlink(path);
        assert_int_equal(pipe(ready), 0);
        child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            if (create(&map, 2000, NULL) < 0)
                _exit(1);
            fill(map, 0, LASTING);
            change_for_ever(map, ready[1]);
        }
        close(ready[1]);
        assert_int_equal(read(ready[0], &byte, 1), 1);
        close(ready[0]);
        assert_int_equal(weir_standing_open(&reader, path, NULL), 0);
        for (int i = 0; i < 20 + round; i++)
            expect_filled(reader, 0, LASTING);
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));
        expect_filled(reader, 0, LASTING);
        for (uint64_t i = 0; i < MOVING; i++) {
            int level = user_level(reader, LASTING + i, S);

            assert_true(level == -1 || level == 1 + (int)((LASTING + i) % 5));
        }
        assert_int_equal(create(&map, 2000, NULL), 0);
        expect_filled(map, 0, LASTING);
        for (uint64_t i = 0; i < MOVING; i++)
            assert_int_equal(user_level(map, LASTING + i, S), user_level(reader, LASTING + i, S));
        assert_true(weir_standing_replaced(reader));
        weir_standing_close(reader);
        weir_standing_close(map);
    }
}

static unsigned mode_after_create(void)
{
    struct weir_standing *map = NULL;
    struct stat status;

    assert_int_equal(create(&map, 100, NULL), 0);
    weir_standing_close(map);
    assert_int_equal(stat(path, &status), 0);
    return status.st_mode & 0777u;
}

TEST_WITH(in_a_folder, remove_folder, "test a group that shares the folder may read")
{
    assert_int_equal(mode_after_create(), 0600);
    assert_int_equal(chmod(folder, 02750), 0); /* not shared: the group may not write there */
    assert_int_equal(mode_after_create(), 0600);
    assert_int_equal(chmod(folder, 02770), 0);
    assert_int_equal(mode_after_create(), 0640); /* also one that takes over the old one */
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mode_after_create(), 0640);
}

TEST_WITH(in_a_folder, remove_folder, "test the group that could read may read the next one")
{
    struct stat status;

    assert_int_equal(mode_after_create(), 0600);
    assert_int_equal(chmod(path, 0640), 0);
    if (geteuid() == 0)
        assert_int_equal(chown(path, 0, 4242), 0);
    assert_int_equal(mode_after_create(), 0640);
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_gid, geteuid() == 0 ? 4242 : getegid());
}

RUN_TESTS()
