/* SPDX-License-Identifier: Apache-2.0 */
/* Edits: several counters as one, narrow and wide, beside a model; a table without room. */
#include "core/counter.h"
#include "table_test.h"
#include "test.h"

#include <stdlib.h>

#define HOUR (60 * MINUTE)

struct fixture {
    struct weir_table *table;
    struct weir_table_owner *owner;
    struct weir_limit narrow, wide, window;
};

static struct fixture open_fixture(uint64_t bytes)
{
    struct fixture f = {.table = open_private_table(bytes)};

    f.owner = attach(f.table);
    f.narrow = make_limit(f.table, (struct weir_limit_spec){.algorithm = WEIR_COUNTER,
                                                            .rate = COUNTER_PACKED_BITS,
                                                            .window_ns = 24 * HOUR});
    f.wide = make_limit(f.table, (struct weir_limit_spec){.algorithm = WEIR_COUNTER,
                                                          .rate = COUNTER_WIDE_BITS,
                                                          .window_ns = 24 * HOUR});
    f.window = make_limit(
        f.table,
        (struct weir_limit_spec){.algorithm = WEIR_FIXED_WINDOW, .rate = 100, .window_ns = HOUR});
    return f;
}

static void close_fixture(struct fixture *f)
{
    validate(f->table);
    weir_table_detach(f->owner);
    weir_table_close(f->table);
}

/* What an edit does to its keys: 0 looks, and shows what is there. */
struct change {
    struct weir_edit edit;
    struct weir_cell put[WEIR_CHECKS_MAX];
    bool writes, clears;
    uint32_t runs;
    struct weir_edit_state seen[WEIR_CHECKS_MAX];
};

static void change_run(struct weir_edit *edit, struct weir_edit_state *states, uint32_t count,
                       uint64_t now_ns)
{
    struct change *change = (struct change *)(void *)edit;

    change->runs++;
    for (uint32_t i = 0; i < count; i++) {
        change->seen[i] = states[i];
        if (change->writes)
            states[i].cell = change->put[i];
        states[i].clear = change->clears;
    }
}

/* Edits keys first, first + 1, ... Returns whether there was room. */
static bool edit(struct fixture *f, struct change *change, uint64_t first, uint32_t count,
                 uint64_t now_ns)
{
    struct one one;

    begin_one(&one);
    for (uint32_t i = 0; i < count; i++)
        add_check(&one, f->table, &f->narrow, first + i, 0);
    change->edit = (struct weir_edit){change_run, &f->wide};
    change->runs = 0;
    one.decision.op = WEIR_OP_EDIT;
    one.decision.edit = &change->edit;
    return submit_one(f->owner, &one, now_ns);
}

static uint64_t spans_used(struct fixture *f)
{
    struct weir_table_stats stats;

    weir_table_stats(f->table, START, &stats);
    return stats.span_bytes_used;
}

TEST("a counter moves to a span and back")
{
    struct fixture f = open_fixture(WEIR_TABLE_BYTES_MIN);
    uint64_t end_ns = START - START % MS + HOUR;
    struct change change = {.writes = true, .put = {{end_ns, 5}}};

    assert_true(edit(&f, &change, 1, 1, START));
    assert_int_equal(change.runs, 1);
    assert_int_equal(spans_used(&f), 0);

    change.put[0].b = UINT64_C(1) << 60;
    assert_true(edit(&f, &change, 1, 1, START));
    assert_int_equal(change.runs, 2);
    assert_int_equal(change.seen[0].cell.b, 5);
    assert_true(spans_used(&f) > 0);

    change.put[0].b = 7;
    assert_true(edit(&f, &change, 1, 1, START));
    assert_int_equal(change.runs, 1);
    assert_int_equal(change.seen[0].cell.b, UINT64_C(1) << 60);
    assert_int_equal(spans_used(&f), 0);

    change.writes = false;
    assert_true(edit(&f, &change, 1, 1, end_ns - 1));
    assert_int_equal(change.seen[0].cell.b, 7);
    assert_int_equal(change.seen[0].cell.a, end_ns);
    assert_true(edit(&f, &change, 1, 1, end_ns));
    assert_int_equal(change.seen[0].cell.b, 0);
    assert_int_equal(change.seen[0].cell.a, 0);
    close_fixture(&f);
}

/* As random edits of 1 to 8 neighbouring keys go, some of them wide, some deleted, the table says
 * what an array says. */
TEST("random edits are as in a model")
{
    enum { KEYS = 64, STEPS = 200000 };
    struct fixture f = open_fixture(WEIR_TABLE_BYTES_MIN);
    struct weir_cell model[KEYS] = {{0, 0}};
    uint64_t seed = 7;

    for (uint32_t step = 0; step < STEPS; step++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        uint32_t count = 1 + (uint32_t)(seed >> 33) % 8;
        uint32_t first = (uint32_t)(seed >> 40) % (KEYS - count + 1);
        uint64_t now_ns = START + step * MS;
        struct change change = {.writes = seed >> 60 != 0};

        for (uint32_t i = 0; i < count; i++) {
            uint64_t bits = seed >> (8 + i);
            uint64_t life_ms = now_ns / MS + 1 + bits % 5000;

            change.put[i] = (struct weir_cell){life_ms * MS, bits >> bits % 60};
            if (bits % 7 == 0)
                change.put[i] = (struct weir_cell){0, 0};
            else if (bits % 7 == 1)
                change.put[i].a = counter_endless(now_ns);
        }
        assert_true(edit(&f, &change, 1000 + first, count, now_ns));
        for (uint32_t i = 0; i < count; i++) {
            struct weir_cell *cell = &model[first + i];

            if (counter_fresh_at(&f.narrow, cell) <= now_ns)
                *cell = (struct weir_cell){0, 0};
            assert_int_equal(change.seen[i].cell.a, cell->a);
            assert_int_equal(change.seen[i].cell.b, cell->b);
            if (change.writes)
                *cell = change.put[i];
        }
    }
    close_fixture(&f);
}

TEST("a state of another kind is shown and kept")
{
    struct fixture f = open_fixture(WEIR_TABLE_BYTES_MIN);
    struct change change = {.writes = false};

    assert_true(use_key(f.table, f.owner, &f.window, 5, 1, START, WEIR_OP_DECIDE));
    assert_true(edit(&f, &change, 5, 1, START));
    assert_int_equal(change.seen[0].cell.a, 0);
    assert_true(change.seen[0].other_until_ns > START);
    assert_true(edit(&f, &change, 5, 1, START));
    assert_true(change.seen[0].other_until_ns > START);

    change.clears = true;
    assert_true(edit(&f, &change, 5, 1, START));
    change.clears = false;
    assert_true(edit(&f, &change, 5, 1, START));
    assert_int_equal(change.seen[0].other_until_ns, 0);

    assert_true(use_key(f.table, f.owner, &f.window, 5, 1, START, WEIR_OP_DECIDE));
    change.writes = true;
    change.put[0] = (struct weir_cell){counter_endless(START), 3};
    assert_true(edit(&f, &change, 5, 1, START));
    assert_true(edit(&f, &change, 5, 1, START));
    assert_int_equal(change.seen[0].cell.b, 3);
    assert_int_equal(change.seen[0].other_until_ns, 0);
    close_fixture(&f);
}

/* Wide counters without room for their spans: nothing is written of an edit that has no room. */
TEST("an edit without room changes nothing")
{
    struct fixture f = open_fixture(WEIR_TABLE_BYTES_MIN);
    struct change change = {.writes = true,
                            .put = {{counter_endless(START), 1}, {counter_endless(START), 1}}};
    uint32_t denied = 0;

    /* Its own counters would be evicted: an edit needs more spans at once than there are. */
    for (uint64_t i = 0; i < WEIR_CHECKS_MAX; i++)
        change.put[i] = (struct weir_cell){counter_endless(START), UINT64_MAX >> 1};
    for (uint64_t key = 0; key < 200000 && denied == 0; key += WEIR_CHECKS_MAX)
        denied += !edit(&f, &change, key, WEIR_CHECKS_MAX, START);
    validate(f.table);

    /* Whatever became of it, a flood of counters never stops counters that fit a slot. */
    change.put[0].b = 1;
    for (uint64_t key = 1000000; key < 1100000; key++)
        assert_true(edit(&f, &change, key, 1, START));
    close_fixture(&f);
}

/* A table full of keys that are denied keeps them all. A key without a state is read as absent, and
 * only what writes it is refused. */
TEST("a key without room is absent")
{
    struct fixture f = open_fixture(WEIR_TABLE_BYTES_MIN);
    struct weir_limit once = make_limit(
        f.table,
        (struct weir_limit_spec){.algorithm = WEIR_FIXED_WINDOW, .rate = 1, .window_ns = HOUR});
    struct change look = {.writes = false}, put = {.writes = true, .clears = false};
    uint32_t refused = 0;

    put.put[0] = (struct weir_cell){counter_endless(START), 1};
    for (uint64_t key = 0; key < 200000; key++) {
        struct one one;

        begin_one(&one);
        add_check(&one, f.table, &once, key, 1);
        (void)submit_one(f.owner, &one, START);
    }
    for (uint64_t key = 1000000; key < 1000100; key++) {
        assert_true(edit(&f, &look, key, 1, START));
        assert_int_equal(look.seen[0].cell.a, 0);
        refused += !edit(&f, &put, key, 1, START);
    }
    assert_true(refused > 0);
    close_fixture(&f);
}

RUN_TESTS()
