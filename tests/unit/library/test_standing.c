/* SPDX-License-Identifier: Apache-2.0 */
/* The standing that `weir serve` keeps, read by a process of the library. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <weir/embed.h>
#include <weir/weir.h>

#include "core/bytes.h"
#include "feature/standing/standing.h"
#include "table/table.h"
#include "temporary.h"
#include "test.h"

#define SECOND UINT64_C(1000000000)

static char state_path[TEMPORARY_MAX + 32];
static char folder[TEMPORARY_MAX], rules[TEMPORARY_MAX + 32], map_path[TEMPORARY_MAX + 32];

static int setup(void **state)
{
    temporary_folder(folder);
    snprintf(rules, sizeof rules, "%s/rules.yaml", folder);
    snprintf(state_path, sizeof state_path, "%s/state", folder);
    snprintf(map_path, sizeof map_path, "%s/standing.db.map", folder);
    FILE *file = fopen(rules, "w");
    if (file == NULL)
        return -1;
    fprintf(file,
            "standing: { by: [client.ip/64, user], file: %s/standing.db }\n"
            "limits:\n"
            "- { name: all, key: [], rate: 1000000/s }\n"
            "- { name: few, match: { standing: warned }, key: [], rate: 2/day }\n",
            folder);
    return fclose(file);
}

static int teardown(void **state)
{
    temporary_remove(folder);
    return 0;
}

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static struct weir_standing *create_map(void)
{
    const struct weir_standing_options options = {.path = map_path, .entries_max = 1000};
    struct weir_standing *map;
    struct weir_reason reason;
    assert_int_equal(weir_standing_create(&map, &options, &reason), 0);
    return map;
}

static uint64_t wall_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
}

static void hold(struct weir_standing *map, const char *user, uint8_t level, uint64_t until_ns)
{
    const struct weir_standing_entry entry = {.until_ns = until_ns,
                                              .level = level,
                                              .origin = WEIR_STANDING_BY_OPERATOR,
                                              .reason_size = 5,
                                              .reason = "abuse"};
    uint64_t id[2];
    weir_standing_id(map, (struct weir_bytes){"user", 4}, weir_bytes_of(user), id);
    assert_int_equal(weir_standing_set(map, id, &entry), 0);
}

static struct weir *open_weir(void)
{
    struct weir *weir;
    struct weir_reason reason;
    if (weir_open(&weir, rules, NULL, &reason) < 0)
        fail_msg("%s", reason.text);
    return weir;
}

static struct weir_answer_summary ask(struct weir *weir, const char *user)
{
    const struct weir_attribute_value request[] = {{"user", user}, {"standing", "trusted"}};
    struct weir_answer_summary answer;
    assert_int_equal(weir_check(weir, request, 2, 1, &answer), 0);
    return answer;
}

TEST_WITH(setup, teardown, "a ban counts from the next check on")
{
    struct weir_standing *map = create_map();
    struct weir *weir = open_weir();
    assert_true(ask(weir, "eve").allowed);
    hold(map, "eve", WEIR_STANDING_SUSPENDED, wall_ns() + 1000 * SECOND);
    struct weir_answer_summary answer = ask(weir, "eve");
    assert_false(answer.allowed);
    assert_string_equal(answer.denied_by, "standing");
    assert_string_equal(answer.standing, "suspended");
    assert_string_equal(answer.reason, "abuse");
    assert_in_range(answer.retry_after_ns, 900 * SECOND, 1000 * SECOND);
    hold(map, "eve", WEIR_STANDING_REVOKED, WEIR_NEVER);
    answer = ask(weir, "eve");
    assert_string_equal(answer.standing, "revoked");
    assert_int_equal(answer.retry_after_ns, WEIR_NEVER);
    hold(map, "eve", WEIR_STANDING_WARNED, WEIR_NEVER);
    answer = ask(weir, "eve");
    assert_true(answer.allowed);
    assert_string_equal(answer.standing, "warned");
    assert_int_equal(answer.remaining, 1); /* of `few` */
    answer = ask(weir, "bob");
    assert_true(answer.allowed);
    assert_string_equal(answer.standing, "");
    assert_string_equal(answer.reason, "");
    weir_close(weir);
    weir_standing_close(map);
}

/* The reader looks for a map ten times a second, and at its size every 20 us. */
static void ask_until(struct weir *weir, const char *user, const char *reason)
{
    while (strcmp(ask(weir, user).reason, reason) != 0)
        sched_yield();
}

/* The state of a program that shares it with `weir serve`, with what that has left in it. */
static struct weir_table *open_state(const char *on_store_error)
{
    const struct weir_table_options options = {.path = state_path, .bytes = 1 << 20};
    struct weir_table *table;
    char text[1024];
    snprintf(text, sizeof text,
             "state: { file: %s, size: 1MiB }\n"
             "standing: { by: [user], file: %s/standing.db%s }\n"
             "limits:\n"
             "- { name: three, key: [user], rate: 3/day }\n",
             state_path, folder, on_store_error);
    write_text(rules, text);
    assert_int_equal(weir_table_open(&table, &options, NULL), 0);
    return table;
}

/* Opened while there is no map that is as new as the mark. */
TEST_WITH(setup, teardown, "without the map that is expected the section decides")
{
    static const char *const settings[] = {"", ", on_store_error: open",
                                           ", on_store_error: closed"};
    for (unsigned i = 0; i < 3; i++) {
        bool closed = i == 2;
        struct weir_table *table = open_state(settings[i]);
        unlink(map_path);
        weir_table_expect_standing(table, 7);
        struct weir *weir = open_weir();
        struct weir_answer_summary answer = ask(weir, "eve");
        assert_int_equal(answer.allowed, !closed);
        assert_string_equal(answer.denied_by, closed ? "standing" : "");
        assert_int_equal(answer.store_failed, closed);
        for (int n = closed ? 0 : 1; n < 3; n++)
            ask(weir, "eve");
        if (!closed) /* limits hold */
            assert_string_equal(ask(weir, "eve").denied_by, "three");
        struct weir_standing *map = create_map(); /* of generation 1: a backup */
        hold(map, "bob", WEIR_STANDING_SUSPENDED, WEIR_NEVER);
        struct weir *late = open_weir();
        assert_int_equal(ask(late, "bob").allowed, !closed);
        weir_close(late);
        weir_table_expect_standing(table, 1); /* now it is the one that is expected */
        ask_until(weir, "bob", "abuse");
        answer = ask(weir, "bob");
        assert_string_equal(answer.standing, "suspended");
        assert_string_equal(answer.reason, "abuse");
        assert_false(answer.store_failed);
        weir_close(weir);
        weir_standing_close(map);
        weir_table_close(table);
        unlink(state_path);
    }
}

/* The last good map is kept while there is no other one. */
TEST_WITH(setup, teardown, "a deleted map counts until there is a new one")
{
    struct weir_table *table = open_state(", on_store_error: closed");
    struct weir_standing *map = create_map();
    struct weir_reason reason;
    const char *cause;
    weir_table_expect_standing(table, weir_standing_generation(map));
    struct weir *weir = open_weir();
    hold(map, "eve", WEIR_STANDING_SUSPENDED, WEIR_NEVER);
    assert_string_equal(ask(weir, "eve").reason, "abuse");
    assert_int_equal(unlink(map_path), 0);
    weir_table_expect_standing(table, weir_standing_generation(map) + 1);
    assert_string_equal(ask(weir, "eve").reason, "abuse");
    assert_true(ask(weir, "bob").allowed);
    hold(map, "bob", WEIR_STANDING_SUSPENDED, WEIR_NEVER);
    assert_int_equal(weir_standing_tend(map, &cause, &reason), 0);
    ask_until(weir, "bob", "abuse");
    hold(map, "dan", WEIR_STANDING_SUSPENDED, WEIR_NEVER); /* in the new file alone */
    ask_until(weir, "dan", "abuse");
    weir_standing_close(map); /* its writer would meet the cut: test_standing_map.py */
    assert_int_equal(truncate(map_path, 0), 0);
    ask_until(weir, "ann", "standing is not known now"); /* a map that was cut is none */
    weir_close(weir);
    unlink(map_path);
    weir_table_close(table);
    unlink(state_path);
}

/* As after a restart of `weir serve`. */
TEST_WITH(setup, teardown, "a map that was replaced is opened again")
{
    struct weir_standing *map = create_map();
    struct weir *weir = open_weir();
    hold(map, "eve", WEIR_STANDING_SUSPENDED, WEIR_NEVER);
    assert_false(ask(weir, "eve").allowed);
    weir_standing_close(map);
    map = create_map();
    hold(map, "bob", WEIR_STANDING_SUSPENDED, WEIR_NEVER);
    assert_false(ask(weir, "bob").allowed);
    assert_false(ask(weir, "eve").allowed);
    weir_close(weir);
    weir_standing_close(map);
}

TEST_WITH(setup, teardown, "a map that comes later counts once it is there")
{
    struct weir *weir = open_weir();
    assert_true(ask(weir, "eve").allowed);
    struct weir_standing *map = create_map();
    hold(map, "eve", WEIR_STANDING_SUSPENDED, WEIR_NEVER);
    uint64_t deadline_ns = wall_ns() + 60 * SECOND;
    while (ask(weir, "eve").allowed) /* it looks ten times a second */
        assert_true(wall_ns() < deadline_ns);
    weir_close(weir);
    weir_standing_close(map);
}

TEST_WITH(setup, teardown, "the map is read where the rules say")
{
    char text[2 * TEMPORARY_MAX + 200];
    snprintf(map_path, sizeof map_path, "%s/another.map", folder);
    snprintf(text, sizeof text,
             "standing: { by: [user], file: %s/standing.db, map: %s }\nlimits: []\n", folder,
             map_path);
    write_text(rules, text);
    struct weir_standing *map = create_map();
    struct weir *weir = open_weir();
    hold(map, "eve", WEIR_STANDING_SUSPENDED, WEIR_NEVER);
    assert_false(ask(weir, "eve").allowed);
    weir_close(weir);
    weir_standing_close(map);
}

TEST_WITH(setup, teardown, "a reload keeps it")
{
    struct weir_reason reason;
    struct weir_standing *map = create_map();
    struct weir *weir = open_weir();
    hold(map, "eve", WEIR_STANDING_SUSPENDED, WEIR_NEVER);
    assert_int_equal(weir_reload(weir, &reason), 0);
    assert_false(ask(weir, "eve").allowed);
    weir_close(weir);
    weir_standing_close(map);
}

TEST_WITH(setup, teardown, "rules without a file have their lists")
{
    struct weir_reason reason;
    char list[TEMPORARY_MAX + 32];
    snprintf(list, sizeof list, "%s/bad.txt", folder);
    write_text(rules,
               "standing: { by: [user], lists: [{ file: bad.txt, by: user, level: suspended }] }\n"
               "limits: []\n");
    write_text(list, "eve # since March\n");
    struct weir *weir = open_weir();
    assert_false(ask(weir, "eve").allowed);
    assert_true(ask(weir, "mallory").allowed);
    write_text(list, "mallory\n");
    assert_int_equal(weir_reload(weir, &reason), 0);
    assert_true(ask(weir, "eve").allowed);
    assert_false(ask(weir, "mallory").allowed);
    unlink(list); /* the old ones stay */
    assert_true(weir_reload(weir, &reason) < 0);
    assert_false(ask(weir, "mallory").allowed);
    weir_close(weir);
}

/* The look at its size may be 20 us old. */
static void let_a_look_grow_old(void)
{
    uint64_t until_ns = wall_ns() + 1000000;
    while (wall_ns() < until_ns)
        ;
}

TEST_WITH(setup, teardown, "a map that is cut short is dropped without a signal")
{
    struct weir_standing *map = create_map();
    struct weir *weir = open_weir();
    hold(map, "eve", WEIR_STANDING_SUSPENDED, WEIR_NEVER);
    assert_false(ask(weir, "eve").allowed);
    assert_int_equal(truncate(map_path, 0), 0);
    let_a_look_grow_old();
    assert_true(ask(weir, "eve").allowed);
    unlink(map_path); /* as the advice is */
    struct weir_standing *other = create_map();
    hold(other, "eve", WEIR_STANDING_SUSPENDED, WEIR_NEVER);
    uint64_t deadline_ns = wall_ns() + 60 * SECOND;
    while (ask(weir, "eve").allowed)
        assert_true(wall_ns() < deadline_ns);
    weir_close(weir);
    weir_standing_close(other);
    weir_standing_close(map);
}

TEST_WITH(setup, teardown, "a map that is none is an error")
{
    struct weir *weir;
    struct weir_reason reason;
    FILE *file = fopen(map_path, "w");
    assert_non_null(file);
    fprintf(file, "something else");
    fclose(file);
    const struct weir_options options = {.state_must_open = true};
    assert_true(weir_open(&weir, rules, &options, &reason) < 0);
    assert_non_null(strstr(reason.text, "standing.db.map"));
}

TEST_WITH(setup, teardown, "a map that is none may leave the limits in force")
{
    const struct weir_options options = {.standing_may_fail = true};
    struct weir *weir;
    struct weir_reason reason;
    write_text(map_path, "something else");
    assert_int_equal(weir_open(&weir, rules, &options, &reason), 0);
    assert_true(ask(weir, "eve").allowed);
    assert_true(weir_standing_check(weir, &reason) < 0);
    assert_non_null(strstr(reason.text, "standing.db.map"));
    unlink(map_path);
    assert_int_equal(weir_standing_check(weir, &reason), 0); /* as good as an empty one */
    struct weir_standing *map = create_map();
    hold(map, "eve", WEIR_STANDING_SUSPENDED, WEIR_NEVER);
    assert_int_equal(weir_standing_check(weir, &reason), 0);
    uint64_t deadline_ns = wall_ns() + 60 * SECOND;
    while (ask(weir, "eve").allowed) /* it is looked for each 100 ms */
        assert_true(wall_ns() < deadline_ns);
    weir_close(weir);
    weir_standing_close(map);
}

RUN_TESTS()
