/* SPDX-License-Identifier: Apache-2.0 */
/* The history of standing: what it keeps over restarts and kill -9, its bounds, its errors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/bytes.h"
#include "feature/standing/history.h"
#include "standing_test.h"
#include "temporary.h"
#include "test.h"

static char folder[TEMPORARY_MAX], path[TEMPORARY_MAX + 16];

static int in_a_folder(void **state)
{
    temporary_folder(folder);
    snprintf(path, sizeof path, "%s/standing.db", folder);
    return 0;
}

static int remove_folder(void **state)
{
    temporary_remove(folder);
    return 0;
}

static struct weir_history *open_history(uint64_t rows_max, uint64_t age_ns)
{
    struct weir_history_options options = {.path = path, .rows_max = rows_max, .age_ns = age_ns};
    struct weir_history *history = NULL;
    struct weir_reason reason = {""};

    if (weir_history_open(&history, &options, &reason) < 0)
        fail_msg("%s", reason.text);
    return history;
}

static struct weir_history_entry user(const char *name, uint8_t level, uint64_t until_ns)
{
    return (struct weir_history_entry){
        .kind = weir_bytes_of("user"),
        .value = weir_bytes_of(name),
        .id = {7, 8},
        .by = weir_bytes_of("operator eve"),
        .entry = entry(level, WEIR_STANDING_BY_OPERATOR, until_ns, "a reason"),
    };
}

/* Sets, and returns the level before. */
static int set(struct weir_history *history, uint64_t now_ns, struct weir_history_entry entry)
{
    int was;

    assert_int_equal(weir_history_set(history, now_ns, &entry, &was, NULL), 0);
    return was;
}

struct text {
    char data[4096];
    size_t used, count;
};

static void take_entry(void *context, const struct weir_history_entry *entry)
{
    struct text *text = context;

    text->count++;
    if (text->used >= sizeof text->data) /* only counted */
        return;
    assert_int_equal(entry->id[0], 7);
    assert_int_equal(entry->id[1], 8);
    text->used += (size_t)snprintf(
        text->data + text->used, sizeof text->data - text->used,
        "%.*s=%.*s %s by %.*s until %lld: %.*s\n", (int)entry->kind.size, entry->kind.data,
        (int)entry->value.size, entry->value.data, weir_standing_level_name(entry->entry.level),
        (int)entry->by.size, entry->by.data,
        entry->entry.until_ns == WEIR_NEVER ? -1 : (long long)(entry->entry.until_ns / S),
        (int)entry->entry.reason_size, entry->entry.reason);
}

static void take_row(void *context, const struct weir_history_row *row)
{
    struct text *text = context;

    text->count++;
    if (text->used >= sizeof text->data)
        return;
    text->used += (size_t)snprintf(
        text->data + text->used, sizeof text->data - text->used, "%llu: %.*s %d>%d %.*s\n",
        (unsigned long long)(row->at_ns / S), (int)row->to.value.size, row->to.value.data, row->was,
        row->level, (int)row->to.entry.reason_size, row->to.entry.reason);
}

static struct text entries(struct weir_history *history, uint64_t now_ns)
{
    struct weir_history_filter filter = {.level = -1, .now_ns = now_ns, .count = 1000};
    struct text text = {.used = 0};

    assert_int_equal(weir_history_entries(history, &filter, take_entry, &text, NULL), 0);
    return text;
}

static struct text rows(struct weir_history *history, uint64_t count)
{
    struct weir_history_filter filter = {.count = count};
    struct text text = {.used = 0};

    assert_int_equal(weir_history_rows(history, &filter, take_row, &text, NULL), 0);
    return text;
}

TEST_WITH(in_a_folder, remove_folder, "test entries and changes are there after a restart")
{
    struct weir_history *history = open_history(0, 0);
    uint64_t secret[2], again[2];
    struct weir_history_entry gone = user("bob", 0, 0);
    int was;

    weir_history_secret(history, secret);
    assert_int_equal(set(history, S, user("ada", WEIR_STANDING_SUSPENDED, 90 * S)), -1);
    assert_int_equal(set(history, 2 * S, user("ada", WEIR_STANDING_REVOKED, WEIR_NEVER)),
                     WEIR_STANDING_SUSPENDED);
    assert_int_equal(set(history, 3 * S, user("bob", WEIR_STANDING_WARNED, 90 * S)), -1);
    assert_int_equal(weir_history_clear(history, 4 * S, &gone, &was, NULL), 1);
    assert_int_equal(was, WEIR_STANDING_WARNED);
    assert_int_equal(gone.id[0], 7);
    assert_int_equal(weir_history_clear(history, 5 * S, &gone, &was, NULL), 0);
    weir_history_close(history);
    history = open_history(0, 0);
    weir_history_secret(history, again);
    assert_memory_equal(secret, again, sizeof secret);
    assert_string_equal(entries(history, 6 * S).data,
                        "user=ada revoked by operator eve until -1: a reason\n");
    assert_string_equal(rows(history, 10).data, "4: bob 1>-1 a reason\n3: bob -1>1 a reason\n"
                                                "2: ada 4>5 a reason\n1: ada -1>4 a reason\n");
    assert_string_equal(rows(history, 1).data, "4: bob 1>-1 a reason\n");
    weir_history_close(history);
}

TEST_WITH(in_a_folder, remove_folder, "test what has ended is not in force and is removed")
{
    struct weir_history *history = open_history(0, 0);

    set(history, S, user("ada", WEIR_STANDING_SUSPENDED, 9 * S));
    assert_int_equal(entries(history, 9 * S - 1).count, 1);
    assert_int_equal(entries(history, 9 * S).count, 0);
    /* The level before is what was in force. */
    assert_int_equal(set(history, 9 * S, user("ada", WEIR_STANDING_WARNED, 20 * S)), -1);
    assert_int_equal(weir_history_prune(history, 20 * S, NULL), 0);
    assert_int_equal(entries(history, 0).count, 0);
    assert_int_equal(rows(history, 10).count, 2);
    weir_history_close(history);
}

TEST_WITH(in_a_folder, remove_folder, "test the audit is bounded by rows and by age")
{
    struct weir_history *history = open_history(5, 1000 * S);

    for (uint64_t i = 1; i <= 12; i++)
        set(history, i * S, user("ada", WEIR_STANDING_SUSPENDED, WEIR_NEVER));
    assert_int_equal(weir_history_prune(history, 13 * S, NULL), 0);
    assert_int_equal(rows(history, 100).count, 5);
    assert_int_equal(weir_history_prune(history, 1010 * S, NULL), 0);
    assert_int_equal(rows(history, 100).count, 3); /* of 10, 11 and 12 */
    assert_int_equal(entries(history, 0).count, 1);
    weir_history_close(history);
}

static struct weir_history_ladder ladder_of(const char *name, const char *penalty, uint8_t step)
{
    return (struct weir_history_ladder){
        .penalty = weir_bytes_of(penalty),
        .kind = weir_bytes_of("user"),
        .value = weir_bytes_of(name),
        .id = {7, 8},
        .gone_ns = 100 * S,
        .state = {.until_ns = step * 10 * S, .clean_ns = step * 20 * S, .step = step},
    };
}

static int swap(struct weir_history *history, struct weir_history_ladder to,
                struct weir_ladder_state from)
{
    return weir_history_swap_ladder(history, &to, &from, NULL);
}

static void take_ladder(void *context, const struct weir_history_ladder *ladder)
{
    struct text *text = context;

    assert_int_equal(ladder->id[1], 8);
    text->used += (size_t)snprintf(
        text->data + text->used, sizeof text->data - text->used, "%.*s %.*s %u %llu %llu\n",
        (int)ladder->value.size, ladder->value.data, (int)ladder->penalty.size,
        ladder->penalty.data, ladder->state.step, (unsigned long long)(ladder->state.until_ns / S),
        (unsigned long long)(ladder->state.clean_ns / S));
}

static struct text ladders(struct weir_history *history, uint64_t now_ns)
{
    struct weir_history_filter filter = {.now_ns = now_ns, .count = 1000};
    struct text text = {.used = 0};

    assert_int_equal(weir_history_ladders(history, &filter, take_ladder, &text, NULL), 0);
    return text;
}

TEST_WITH(in_a_folder, remove_folder, "test a ladder changes only from the state that is there")
{
    const struct weir_ladder_state none = {.step = 0};
    struct weir_history *history = open_history(0, 0);
    struct weir_history_ladder one = ladder_of("ada", "brute", 1);
    struct weir_history_ladder two = ladder_of("ada", "brute", 2);

    assert_int_equal(swap(history, two, one.state), 0);
    assert_string_equal(ladders(history, S).data, "");
    assert_int_equal(swap(history, one, none), 1);
    assert_int_equal(swap(history, two, none), 0);
    assert_int_equal(swap(history, ladder_of("ada", "other", 3), none), 1);
    assert_int_equal(swap(history, two, one.state), 1);
    assert_int_equal(swap(history, two, one.state), 0); /* who comes second */
    weir_history_close(history);
    history = open_history(0, 0);
    assert_string_equal(ladders(history, S).data, "ada brute 2 20 40\nada other 3 30 60\n");
    weir_history_close(history);
}

TEST_WITH(in_a_folder, remove_folder, "test an end without an end is kept")
{
    const struct weir_ladder_state none = {.step = 0};
    struct weir_history *history = open_history(0, 0);
    struct weir_history_ladder revoked = ladder_of("ada", "brute", 1);

    revoked.state.until_ns = revoked.state.clean_ns = revoked.gone_ns = WEIR_NEVER;
    assert_int_equal(swap(history, revoked, none), 1);
    assert_int_equal(weir_history_prune(history, UINT64_C(1) << 62, NULL), 0);
    assert_int_equal(swap(history, revoked, revoked.state), 1);
    weir_history_close(history);
}

TEST_WITH(in_a_folder, remove_folder, "test ladders that are gone are removed")
{
    const struct weir_ladder_state none = {.step = 0};
    struct weir_history *history = open_history(0, 0);

    assert_int_equal(swap(history, ladder_of("ada", "brute", 1), none), 1);
    assert_int_equal(weir_history_prune(history, 100 * S - 1, NULL), 0);
    assert_string_equal(ladders(history, 0).data, "ada brute 1 10 20\n");
    assert_string_equal(ladders(history, 100 * S).data, "");
    assert_int_equal(weir_history_prune(history, 100 * S, NULL), 0);
    assert_string_equal(ladders(history, 0).data, "");
    weir_history_close(history);
}

TEST_WITH(in_a_folder, remove_folder, "test clearing what penalties set forgives all steps")
{
    const struct weir_ladder_state none = {.step = 0};
    struct weir_history *history = open_history(0, 0);
    struct weir_history_entry gone = user("ada", 0, 0);
    int was;

    assert_int_equal(swap(history, ladder_of("ada", "brute", 1), none), 1);
    assert_int_equal(swap(history, ladder_of("ada", "other", 1), none), 1);
    assert_int_equal(swap(history, ladder_of("bob", "brute", 1), none), 1);
    assert_int_equal(weir_history_clear(history, S, &gone, &was, NULL), 0); /* an operator's */
    gone.entry.origin = WEIR_STANDING_BY_PENALTY;
    assert_int_equal(weir_history_clear(history, S, &gone, &was, NULL), 1);
    assert_int_equal(was, -1); /* no term ran */
    assert_string_equal(ladders(history, S).data, "bob brute 1 10 20\n");
    assert_string_equal(rows(history, 10).data, "1: ada -1>-1 a reason\n");
    assert_int_equal(weir_history_clear(history, S, &gone, &was, NULL), 0);
    weir_history_close(history);
}

/* As the first histories were. */
TEST_WITH(in_a_folder, remove_folder, "test a history without ladders gets a table of them")
{
    const struct weir_ladder_state none = {.step = 0};
    struct weir_history *history = open_history(0, 0);
    sqlite3 *db = NULL;

    set(history, S, user("ada", WEIR_STANDING_SUSPENDED, 90 * S));
    weir_history_close(history);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "DROP TABLE ladder", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    history = open_history(0, 0);
    assert_int_equal(entries(history, S).count, 1);
    assert_int_equal(swap(history, ladder_of("ada", "brute", 1), none), 1);
    weir_history_close(history);
}

TEST_WITH(in_a_folder, remove_folder, "test a group is kept whole")
{
    struct weir_history *history = open_history(0, 0);

    assert_int_equal(weir_history_begin(history, NULL), 0);
    set(history, S, user("ada", WEIR_STANDING_SUSPENDED, WEIR_NEVER));
    set(history, S, user("bob", WEIR_STANDING_SUSPENDED, WEIR_NEVER));
    assert_int_equal(weir_history_end(history, NULL), 0);
    assert_int_equal(entries(history, S).count, 2);
    weir_history_close(history);
}

/* A writer is killed at some point; each change that it reported is there, with its audit row. */
TEST_WITH(in_a_folder, remove_folder, "test reported changes survive kill 9")
{
    for (int round = 0; round < 5; round++) {
        struct weir_history *history;
        uint32_t done = 0, last;
        int report[2], status;
        pid_t child;

        remove_folder(NULL);
        assert_int_equal(in_a_folder(NULL), 0);
        assert_int_equal(pipe(report), 0);
        child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            history = open_history(0, 0);
            for (uint32_t i = 1;; i++) {
                char name[16];

                snprintf(name, sizeof name, "u%u", (unsigned)i);
                set(history, i * S, user(name, WEIR_STANDING_SUSPENDED, WEIR_NEVER));
                if (write(report[1], &i, sizeof i) != sizeof i)
                    _exit(1);
            }
        }
        close(report[1]);
        while (done < 5U + 3 * (unsigned)round &&
               read(report[0], &last, sizeof last) == sizeof last)
            done = last;
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        while (read(report[0], &last, sizeof last) == sizeof last)
            done = last;
        close(report[0]);
        history = open_history(0, 0);
        assert_in_range(entries(history, S).count, done, done + 1);
        assert_int_equal(rows(history, 1000).count, entries(history, S).count);
        weir_history_close(history);
    }
}

static void expect_refused(int err, const char *text)
{
    struct weir_history_options options = {.path = path};
    struct weir_history *history = NULL;
    struct weir_reason reason = {""};

    assert_int_equal(weir_history_open(&history, &options, &reason), err);
    assert_null(history);
    assert_non_null(strstr(reason.text, path));
    assert_non_null(strstr(reason.text, text));
}

static void write_file(const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

TEST_WITH(in_a_folder, remove_folder, "test other files and damage are refused")
{
    sqlite3 *db = NULL;

    write_file("This is a text that is longer than the header of a database, and not one.\n"
               "This is a text that is longer than the header of a database, and not one.\n");
    expect_refused(WEIR_ERR_FORMAT, "not a database");
    unlink(path);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "CREATE TABLE x(y)", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    expect_refused(WEIR_ERR_FORMAT, "another program");
    unlink(path);
    weir_history_close(open_history(0, 0));
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "PRAGMA user_version = 9", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    expect_refused(WEIR_ERR_FORMAT, "another version");
}

/* As `weir explain` reads it beside its writer. */
TEST_WITH(in_a_folder, remove_folder, "test a look reads and makes nothing")
{
    const struct weir_history_options options = {.path = path, .look = true};
    struct weir_history *writer, *look = NULL;
    struct weir_reason reason = {""};

    assert_true(weir_history_open(&look, &options, &reason) < 0);
    assert_null(look);
    assert_non_null(strstr(reason.text, path));
    assert_int_equal(access(path, F_OK), -1);
    writer = open_history(0, 0);
    assert_int_equal(weir_history_open(&look, &options, &reason), 0);
    set(writer, 5 * S, user("ann", WEIR_STANDING_SUSPENDED, 100 * S));
    assert_int_equal(entries(look, 6 * S).count, 1);
    assert_true(weir_history_set(look, 6 * S,
                                 &(struct weir_history_entry){.kind = weir_bytes_of("user"),
                                                              .value = weir_bytes_of("bob"),
                                                              .by = weir_bytes_of("x"),
                                                              .entry = {.level = 1}},
                                 &(int){0}, &reason) < 0);
    weir_history_close(look);
    weir_history_close(writer);
}

TEST("test a folder that is not there is named")
{
    struct weir_history_options options = {.path = "/nowhere/at/all.db"};
    struct weir_history *history = NULL;
    struct weir_reason reason = {""};

    assert_int_equal(weir_history_open(&history, &options, &reason), WEIR_ERR_IO);
    assert_non_null(strstr(reason.text, options.path));
}

TEST_WITH(in_a_folder, remove_folder,
          "test a database that another process has locked is an error that passes")
{
    struct weir_history *history = open_history(0, 0);
    struct weir_history_entry one = user("ada", WEIR_STANDING_SUSPENDED, WEIR_NEVER);
    struct weir_reason reason = {""};
    sqlite3 *db = NULL;
    int was;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(weir_history_set(history, S, &one, &was, &reason), WEIR_ERR_BUSY);
    assert_non_null(strstr(reason.text, "locked"));
    assert_int_equal(sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    assert_int_equal(set(history, S, one), -1);
    assert_int_equal(entries(history, S).count, 1);
    weir_history_close(history);
}

/* A file that may not grow is a disk that is full. */
TEST_WITH(in_a_folder, remove_folder, "test a full disk is an error and loses nothing")
{
    struct weir_history *history = open_history(0, 0);
    struct weir_reason reason = {""};
    struct rlimit all, few;
    int err = 0, kept = 0;

    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &all), 0);
    few = all;
    few.rlim_cur = 200000;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &few), 0);
    for (int i = 0; i < 1000 && err == 0; i++) {
        struct weir_history_entry one;
        char name[16];
        int was;

        snprintf(name, sizeof name, "u%d", i);
        one = user(name, WEIR_STANDING_SUSPENDED, WEIR_NEVER);
        err = weir_history_set(history, S, &one, &was, &reason);
        kept += err == 0;
    }
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &all), 0);
    assert_int_equal(err, WEIR_ERR_IO);
    assert_non_null(strstr(reason.text, path));
    assert_int_equal(entries(history, S).count, kept);
    set(history, S, user("more", WEIR_STANDING_SUSPENDED, WEIR_NEVER));
    assert_int_equal(entries(history, S).count, kept + 1);
    weir_history_close(history);
}

RUN_TESTS()
