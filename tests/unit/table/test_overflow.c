/* SPDX-License-Identifier: Apache-2.0 */
/* Which limits have which chunks of overflow cells: none is given twice, all come back, and the
 * list of those that have any is right, also after a file was opened that has no such list. */
#include "table_test.h"
#include "test.h"

#include <stdio.h>

#include "state_folder.h"
#include "table/overflow.h"
#include "table/owner.h"

#define LIMITS 60

static struct weir_table *open_here(void)
{
    return open_table(
        &(struct weir_table_options){.path = path, .bytes = UINT64_C(4) << 20, .secret = {1, 2}});
}

static struct weir_limit an_hour(struct weir_table *table, const char *name)
{
    const struct weir_limit_spec spec = {
        .algorithm = WEIR_FIXED_WINDOW, .rate = 10, .window_ns = 60 * MINUTE};
    struct weir_limit limit;

    assert_int_equal(weir_limit_init(&limit, &spec, NULL), 0);
    limit.name = name;
    assert_int_equal(weir_table_intern(table, &limit), 0);
    return limit;
}

/* Has a key of a limit count in overflow cells. */
static void overflow_one(struct weir_table_owner *owner, const struct weir_limit *limit,
                         uint64_t now_ns)
{
    struct weir_table *table = owner->table;
    struct table_param *param = &table->params[limit->id - 1];
    struct weir_check check = {.limit = limit, .cost = 10};
    const struct overflow_charge charge = {.check = &check, .now_ns = now_ns};
    struct weir_cell *cells[OVERFLOW_ROWS];

    key_hash(table, limit->id, check.hash);
    assert_true(owner_lock(owner, &param->lock));
    assert_true(overflow_open(owner, param, now_ns));
    overflow_find(table, param, &check, 0, cells);
    assert_true(overflow_charge(owner, param, cells, &charge));
    owner->slot->undo_count = 0;
    owner_unlock(&param->lock);
}

static bool is_listed(const struct weir_table *table, uint32_t index)
{
    return table->chunk_holders[index / 64] >> index % 64 & 1;
}

static uint32_t count_listed(const struct weir_table *table)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < WEIR_TABLE_PARAMS_MAX; i++)
        count += is_listed(table, i);
    return count;
}

/* Whether the list has exactly those limits that have chunks. */
static void expect_list_is_right(const struct weir_table *table)
{
    for (uint32_t i = 0; i < table->fixed.params_max; i++)
        assert_int_equal(is_listed(table, i), table->params[i].chunks != 0);
}

TEST("chunks are given once and come back")
{
    struct weir_table *table = open_private_table(UINT64_C(4) << 20);
    struct weir_table_owner *owner = attach(table);
    struct weir_limit limits[LIMITS];
    char names[LIMITS][8];

    for (uint32_t i = 0; i < LIMITS; i++) {
        snprintf(names[i], sizeof names[i], "l%u", i);
        limits[i] = an_hour(table, names[i]);
    }
    for (uint32_t round = 0; round < 10; round++) {
        uint64_t now_ns = START + round * 20 * MINUTE;

        for (uint32_t i = round % 3; i < LIMITS; i += 3) {
            overflow_one(owner, &limits[i], now_ns);
            expect_list_is_right(table);
        }
        validate(table);
        assert_true(count_listed(table) >= LIMITS / 3);
    }
    overflow_one(owner, &limits[0], START + 600 * MINUTE);
    assert_int_equal(count_listed(table), 1);
    validate(table);
    weir_table_detach(owner);
    weir_table_close(table);
}

TEST("a file without the list gets one")
{
    struct weir_table *table = open_here();
    struct weir_table_owner *owner = attach(table);
    struct weir_limit one = an_hour(table, "one"), other = an_hour(table, "other");

    overflow_one(owner, &one, START);
    memset(table->chunk_holders, 0, WEIR_TABLE_PARAMS_MAX / 8);
    weir_table_detach(owner);
    weir_table_close(table);

    table = open_here();
    owner = attach(table);
    other = an_hour(table, "other");
    overflow_one(owner, &other, START);
    assert_int_equal(count_listed(table), 2);
    expect_list_is_right(table);
    validate(table);
    weir_table_detach(owner);
    weir_table_close(table);
}

RUN_TESTS_WITH(make_folder, remove_folder)
