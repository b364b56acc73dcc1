/* SPDX-License-Identifier: Apache-2.0 */
/* The list of limits: places are given back by limits that changed, commands and dead processes. */
#include "table_test.h"
#include "test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "state_folder.h"
#include "table/owner.h"
#include "table/slot.h"

static struct weir_limit compile(const char *name, struct weir_limit_spec spec)
{
    struct weir_limit limit;

    assert_int_equal(weir_limit_init(&limit, &spec, NULL), 0);
    limit.name = name;
    return limit;
}

static struct weir_limit_spec an_hour(enum weir_algorithm algorithm, uint64_t rate)
{
    return (struct weir_limit_spec){.algorithm = algorithm, .rate = rate, .window_ns = 60 * MINUTE};
}

/* The 256 KiB table has 32 places. */
TEST("limits that change at every reload never fill the list")
{
    static const enum weir_algorithm algorithms[] = {WEIR_GCRA, WEIR_FIXED_WINDOW,
                                                     WEIR_SLIDING_WINDOW, WEIR_LEAKY_BUCKET};
    struct weir_table *table = open_private_table(WEIR_TABLE_BYTES_MIN);
    struct weir_table_owner *owner = attach(table);
    struct weir_limit now[4], before[4];
    char names[4][8];

    for (uint64_t round = 0; round < 300; round++) {
        for (uint32_t i = 0; i < 4; i++) {
            snprintf(names[i], sizeof names[i], "l%u", i);
            now[i] = compile(names[i], an_hour(algorithms[i], 100 + round));
            assert_int_equal(weir_table_intern(table, &now[i]), 0);
        }
        for (uint32_t i = 0; i < 4; i++) {
            if (round > 0)
                weir_table_unpin(table, before[i].id);
            before[i] = now[i];
            decide_key(table, owner, &now[i], 1000 + round * 4 + i, 1, START);
            /* One that comes every time, and never more than its N. */
            assert_int_equal(decide_key(table, owner, &now[i], i, round == 0 ? 100 : 1, START),
                             true);
            assert_false(decide_key(table, owner, &now[i], i, 1, START));
        }
        assert_true(weir_table_param_count(table) <= 32);
    }
    validate(table);
    weir_table_detach(owner);
    weir_table_close(table);
}

TEST("what was used is carried over to the changed limit")
{
    struct weir_table *table = open_private_table(WEIR_TABLE_BYTES_MIN);
    struct weir_table_owner *owner = attach(table);
    struct weir_limit old = compile("api", an_hour(WEIR_FIXED_WINDOW, 10));
    struct weir_limit new = compile("api", an_hour(WEIR_FIXED_WINDOW, 20));

    assert_int_equal(weir_table_intern(table, &old), 0);
    for (uint64_t key = 0; key < 100; key++)
        assert_true(decide_key(table, owner, &old, key, 8, START));
    assert_int_equal(weir_table_intern(table, &new), 0);
    weir_table_unpin(table, old.id);
    for (uint64_t i = 1; weir_table_param_count(table) <= 16; i++) {
        struct weir_limit filler = compile(NULL, an_hour(WEIR_GCRA, i));

        assert_int_equal(weir_table_intern(table, &filler), 0);
    }
    while (weir_table_tidy(table, START, 100))
        continue;
    assert_int_equal(weir_table_param_count(table), 16); /* the old one has gone */
    for (uint64_t key = 0; key < 100; key++) {
        assert_true(decide_key(table, owner, &new, key, 12, START));
        assert_false(decide_key(table, owner, &new, key, 1, START));
    }
    validate(table);
    weir_table_detach(owner);
    weir_table_close(table);
}

/* The hour of a limit of several rates, beside its second, changes. */
TEST("one of several rates is not carried over to another")
{
    struct weir_table *table = open_private_table(WEIR_TABLE_BYTES_MIN);
    struct weir_table_owner *owner = attach(table);
    struct weir_limit second = compile(
        "api", (struct weir_limit_spec){.algorithm = WEIR_GCRA, .rate = 50, .window_ns = SECOND});
    struct weir_limit hour = compile("api", an_hour(WEIR_GCRA, 100));
    struct weir_limit changed = compile("api", an_hour(WEIR_GCRA, 120));
    struct weir_limit plan = compile("api", an_hour(WEIR_GCRA, 100000));

    assert_int_equal(weir_table_intern(table, &second), 0);
    assert_int_equal(weir_table_intern(table, &hour), 0);
    for (uint64_t key = 0; key < 50; key++)
        assert_true(decide_key(table, owner, &hour, key, 100, START));
    assert_int_equal(weir_table_intern(table, &plan), 0);
    assert_int_equal(weir_table_intern(table, &changed), 0);
    weir_table_unpin(table, hour.id);
    for (uint64_t i = 1; weir_table_param_count(table) <= 16; i++) {
        struct weir_limit filler = compile(NULL, an_hour(WEIR_GCRA, i));

        assert_int_equal(weir_table_intern(table, &filler), 0);
    }
    while (weir_table_tidy(table, START, 100))
        continue;
    for (uint64_t key = 0; key < 50; key++) {
        assert_true(decide_key(table, owner, &changed, key, 20, START + 5 * SECOND));
        assert_false(decide_key(table, owner, &changed, key, 2, START + 5 * SECOND));
    }
    validate(table);
    weir_table_detach(owner);
    weir_table_close(table);
}

#define MANY 200

/* The limit that a key's state is of: its id; 0: there is none. */
static uint16_t state_of(const struct weir_table *table, uint64_t key)
{
    uint64_t hash[2];

    key_hash(table, key, hash);

    struct position at = position_of(&table->map, hash);
    uint64_t pair[] = {at.bucket, position_other(&table->map, at.bucket, at.tag)};

    for (uint32_t b = 0; b < 2; b++) {
        const struct table_bucket *bucket = region_bucket(table, pair[b]);
        int slot = slot_find(bucket, at.tag, b == 1);

        if (slot >= 0)
            return bucket->param[slot];
    }
    return 0;
}

/* Whom a state goes to, by the slow way: the slowest of those that stay. */
static uint16_t successor_of(const struct weir_limit *limits, uint32_t from)
{
    const struct weir_limit *best = NULL, *old = &limits[from];

    for (uint32_t i = 1; i < MANY; i += 2)
        if (strcmp(limits[i].name, old->name) == 0 && limits[i].packs && old->packs &&
            limits[i].spec.window_ns == old->spec.window_ns &&
            weir_limit_converts(old, &limits[i]) &&
            (best == NULL || limits[i].spec.rate < best->spec.rate))
            best = &limits[i];
    return best != NULL ? best->id : old->id;
}

static struct weir_limit_spec draw_spec(uint64_t *random)
{
    static const enum weir_algorithm algorithms[] = {
        WEIR_GCRA, WEIR_FIXED_WINDOW, WEIR_SLIDING_WINDOW, WEIR_QUOTA, WEIR_SLIDING_LOG};
    static const uint64_t bounds[] = {START - 60 * MINUTE, START + 60 * MINUTE,
                                      START + 120 * MINUTE};
    struct weir_limit_spec spec = an_hour(algorithms[next_random(random) % 5], 0);

    spec.rate = 10 + next_random(random) % 5000;
    spec.window_ns *= 1 + next_random(random) % 2;
    if (spec.algorithm == WEIR_SLIDING_WINDOW)
        spec.strict = next_random(random) % 2;
    if (spec.algorithm == WEIR_QUOTA) {
        spec.calendar = 1 + next_random(random) % 2;
        spec.bounds = bounds;
        spec.bound_count = 3;
    }
    return spec;
}

/* Every other limit of three names stays; states of the rest go where a slow search says. */
TEST("states are carried over to the slowest of their kind")
{
    static const char *const names[] = {"a", "b", "c"};
    struct weir_table *table = open_table(
        &(struct weir_table_options){.bytes = 8 * WEIR_TABLE_BYTES_MIN, .params_max = MANY + 100});
    struct weir_table_owner *owner = attach(table);
    struct weir_limit limits[MANY];
    uint64_t random = 21;
    uint32_t moved = 0;

    for (uint32_t i = 0; i < MANY; i++) {
        limits[i] = compile(names[next_random(&random) % 3], draw_spec(&random));
        assert_int_equal(weir_table_intern(table, &limits[i]), 0);
        assert_true(decide_key(table, owner, &limits[i], i, 9, START));
    }
    for (uint32_t i = 0; i < MANY; i += 2)
        weir_table_unpin(table, limits[i].id);
    while (weir_table_tidy(table, START, 1000))
        continue;
    for (uint32_t i = 0; i < MANY; i++) {
        uint16_t expected = i % 2 == 0 ? successor_of(limits, i) : limits[i].id;

        assert_int_equal(state_of(table, i), expected);
        moved += expected != limits[i].id;
    }
    assert_true(moved > MANY / 10 && moved < MANY / 2);
    validate(table);
    weir_table_detach(owner);
    weir_table_close(table);
}

TEST("limits that nobody needs are dropped and those with states stay")
{
    struct weir_table *table = open_private_table(WEIR_TABLE_BYTES_MIN);
    struct weir_table_owner *owner = attach(table);
    struct weir_limit used = compile("used", an_hour(WEIR_SLIDING_LOG, 3));

    assert_int_equal(weir_table_intern(table, &used), 0);
    assert_true(decide_key(table, owner, &used, 1, 3, START));
    weir_table_unpin(table, used.id);
    for (uint64_t i = 1; i <= 20; i++) {
        struct weir_limit made_up = compile(NULL, an_hour(WEIR_GCRA, i));

        assert_int_equal(weir_table_intern(table, &made_up), 0);
        weir_table_unpin(table, made_up.id);
    }
    while (weir_table_tidy(table, START, 1000))
        continue;
    assert_int_equal(weir_table_param_count(table), 1);
    assert_int_equal(weir_table_intern(table, &used), 0);
    assert_false(decide_key(table, owner, &used, 1, 1, START));
    validate(table);
    weir_table_detach(owner);
    weir_table_close(table);
}

TEST("a pinned limit is never dropped even without a state")
{
    struct weir_table *table = open_private_table(WEIR_TABLE_BYTES_MIN);
    struct weir_table_owner *owner = attach(table);
    struct weir_limit pinned[31];

    for (uint64_t i = 0; i < 31; i++) {
        pinned[i] = compile(NULL, an_hour(WEIR_FIXED_WINDOW, i + 1));
        assert_int_equal(weir_table_intern(table, &pinned[i]), 0);
    }
    for (uint64_t i = 1; i <= 100; i++) {
        struct weir_limit made_up = compile(NULL, an_hour(WEIR_GCRA, i));

        assert_int_equal(weir_table_intern(table, &made_up), 0);
        assert_true(decide_key(table, owner, &made_up, 1000 + i, 1, START));
        weir_table_unpin(table, made_up.id);
    }
    for (uint64_t i = 0; i < 31; i++) {
        assert_true(decide_key(table, owner, &pinned[i], i, i + 1, START));
        assert_false(decide_key(table, owner, &pinned[i], i, 1, START));
    }
    struct weir_limit last = compile(NULL, an_hour(WEIR_GCRA, 1000)),
                      more = compile(NULL, an_hour(WEIR_GCRA, 1001));

    assert_int_equal(weir_table_intern(table, &last), 0);
    assert_int_equal(weir_table_intern(table, &more), WEIR_ERR_FULL);
    validate(table);
    weir_table_detach(owner);
    weir_table_close(table);
}

/* A process that pins all places and waits to be killed. */
static pid_t start_hoarder(void)
{
    int ready[2];
    char byte;

    assert_int_equal(pipe(ready), 0);

    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        struct weir_table *table =
            open_table(&(struct weir_table_options){.path = path, .bytes = WEIR_TABLE_BYTES_MIN});

        for (uint64_t i = 1; i <= 32; i++) {
            struct weir_limit limit = compile(NULL, an_hour(WEIR_GCRA, i));

            if (weir_table_intern(table, &limit) != 0)
                _exit(1);
        }
        if (write(ready[1], "x", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return child;
}

TEST_WITH(NULL, remove_file, "pins end with their process")
{
    pid_t child = start_hoarder();
    struct weir_table *table =
        open_table(&(struct weir_table_options){.path = path, .bytes = WEIR_TABLE_BYTES_MIN});
    struct weir_limit mine = compile("mine", an_hour(WEIR_GCRA, 5));
    int status;

    assert_int_equal(weir_table_intern(table, &mine), WEIR_ERR_FULL);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(weir_table_intern(table, &mine), 0);
    assert_int_equal(weir_table_param_count(table), 1);
    validate(table);
    weir_table_close(table);
}

/* Two processes sweep at the same time: one carries states over to a limit that the other is about
 * to drop. */
TEST_WITH(NULL, remove_file, "a limit that another sweep carries over to is not dropped")
{
    const struct weir_table_options options = {.path = path, .bytes = WEIR_TABLE_BYTES_MIN};
    struct weir_table *first = open_table(&options), *second = open_table(&options);
    struct weir_table_owner *owner = attach(first);
    struct weir_limit old = compile("api", an_hour(WEIR_FIXED_WINDOW, 10));
    struct weir_limit new = compile("api", an_hour(WEIR_FIXED_WINDOW, 20));

    assert_int_equal(weir_table_intern(first, &old), 0);
    for (uint64_t key = 0; key < 100; key++)
        assert_true(decide_key(first, owner, &old, key, 8, START));
    weir_table_unpin(first, old.id);
    assert_int_equal(weir_table_intern(first, &new), 0);
    for (uint64_t i = 1; weir_table_param_count(first) <= 16; i++) {
        struct weir_limit filler = compile(NULL, an_hour(WEIR_GCRA, i));

        assert_int_equal(weir_table_intern(first, &filler), 0);
    }
    assert_true(weir_table_tidy(second, START, 1)); /* now `new` takes the states of `old` */
    weir_table_unpin(first, new.id);
    assert_true(weir_table_tidy(first, START, 1));
    assert_true(weir_table_tidy(first, START, first->fixed.buckets - 1));
    while (weir_table_tidy(second, START, 1000) && second->sweep != NULL)
        continue;
    weir_table_tidy(first, START, 1);
    validate(first);
    assert_int_equal(weir_table_intern(first, &new), 0);
    for (uint64_t key = 0; key < 100; key++)
        assert_false(decide_key(first, owner, &new, key, 13, START));
    weir_table_detach(owner);
    weir_table_close(second);
    weir_table_close(first);
}

/* It may be moving a state there, which the sweep would not find. */
TEST_WITH(NULL, remove_file, "nothing is dropped while an owner that is stopped has a bucket")
{
    const struct weir_table_options options = {
        .path = path, .bytes = WEIR_TABLE_BYTES_MIN, .patience_ns = MS};
    struct weir_table *table = open_table(&options), *second = open_table(&options);
    struct weir_table_owner *stopped = attach(second);
    uint32_t *lock = &second->buckets[second->fixed.buckets / 2].lock;

    for (uint64_t i = 1; i <= 20; i++) {
        struct weir_limit made_up = compile(NULL, an_hour(WEIR_GCRA, i));

        assert_int_equal(weir_table_intern(table, &made_up), 0);
        weir_table_unpin(table, made_up.id);
    }
    assert_true(owner_lock(stopped, lock));
    while (weir_table_tidy(table, START, 1000))
        continue;
    assert_int_equal(weir_table_param_count(table), 20);
    owner_unlock(lock);
    while (weir_table_tidy(table, START, 1000))
        continue;
    assert_int_equal(weir_table_param_count(table), 0);
    weir_table_detach(stopped);
    weir_table_close(second);
    weir_table_close(table);
}

/* A key whose second bucket comes before its first. Sets where it is. */
static uint64_t draw_key(const struct weir_table *table, struct position *at, uint64_t *other)
{
    uint64_t hash[2], key = 0;

    do {
        key_hash(table, ++key, hash);
        *at = position_of(&table->map, hash);
        *other = position_other(&table->map, at->bucket, at->tag);
    } while (*other >= at->bucket);
    return key;
}

/* The end of one sweep lets states move while another is running. */
TEST_WITH(NULL, remove_file, "a sweep that another has overtaken drops nothing")
{
    const struct weir_table_options options = {.path = path, .bytes = WEIR_TABLE_BYTES_MIN};
    struct weir_table *first = open_table(&options), *second = open_table(&options);
    struct weir_table_owner *owner = attach(first);
    struct weir_limit limit = compile("api", an_hour(WEIR_FIXED_WINDOW, 10));
    struct position at;
    uint64_t other, key = draw_key(first, &at, &other);

    assert_int_equal(weir_table_intern(first, &limit), 0);
    assert_true(decide_key(first, owner, &limit, key, 10, START));
    weir_table_unpin(first, limit.id);
    for (uint64_t i = 1; weir_table_param_count(first) <= 20; i++) {
        struct weir_limit filler = compile(NULL, an_hour(WEIR_GCRA, i));

        assert_int_equal(weir_table_intern(first, &filler), 0);
    }
    assert_true(weir_table_tidy(first, START, 1));
    assert_true(weir_table_tidy(first, START, at.bucket)); /* not the one that has the key */
    assert_true(weir_table_tidy(second, START, 1));
    assert_false(weir_table_tidy(second, START, second->fixed.buckets));

    struct table_bucket *from = &first->buckets[at.bucket];
    int slot = slot_find(from, at.tag, false);

    assert_true(slot >= 0);
    slot_put(&first->buckets[other], 0, at.tag, true, limit.id, from->slot[slot].state);
    slot_set_param(from, (uint32_t)slot, 0);
    assert_false(weir_table_tidy(first, START, first->fixed.buckets));
    validate(first);
    assert_int_equal(weir_table_intern(first, &limit), 0);
    assert_false(decide_key(first, owner, &limit, key, 1, START));
    weir_table_detach(owner);
    weir_table_close(second);
    weir_table_close(first);
}

/* As two sweeps at the same time could leave them. */
TEST_WITH(NULL, remove_file, "states of dropped limits are removed at the start")
{
    const struct weir_table_options options = {
        .path = path, .bytes = WEIR_TABLE_BYTES_MIN, .span_percent = 20};
    struct weir_table *table = open_table(&options);
    struct weir_table_owner *owner = attach(table);
    struct weir_limit cell = compile("cell", an_hour(WEIR_FIXED_WINDOW, 10));
    struct weir_limit log = compile("log", an_hour(WEIR_SLIDING_LOG, 1000));
    struct weir_limit kept = compile("kept", an_hour(WEIR_SLIDING_LOG, 10));

    assert_int_equal(weir_table_intern(table, &cell), 0);
    assert_int_equal(weir_table_intern(table, &log), 0);
    assert_int_equal(weir_table_intern(table, &kept), 0);
    for (uint64_t key = 0; key < 20; key++) {
        assert_true(decide_key(table, owner, &cell, key, 10, START));
        assert_true(decide_key(table, owner, &kept, 100 + key, 10, START));
        for (uint64_t i = 0; key < 3 && i < 900; i++) /* the largest take a run of pages */
            assert_true(decide_key(table, owner, &log, 200 + key, 1, START + i));
    }
    table->params[cell.id - 1].live = table->params[log.id - 1].live = 2;
    assert_true(weir_table_validate(table, NULL) < 0);
    weir_table_detach(owner);
    weir_table_close(table);

    table = open_table(&options);
    owner = attach(table);
    validate(table);
    assert_int_equal(weir_table_intern(table, &kept), 0);
    assert_int_equal(weir_table_intern(table, &cell), 0);
    for (uint64_t key = 0; key < 20; key++) {
        assert_false(decide_key(table, owner, &kept, 100 + key, 1, START + SECOND));
        assert_true(decide_key(table, owner, &cell, key, 1, START + SECOND));
    }
    validate(table);
    weir_table_detach(owner);
    weir_table_close(table);
}

RUN_TESTS_WITH(make_folder, remove_folder)
