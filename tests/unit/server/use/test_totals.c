/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "feature/use/server/observer.h"
#include "feature/use/server/totals.h"
#include "test.h"

#define ROOM 8

static struct weir_totals totals;

/* One observation of a route or of a limit's burst, by number. */
static void see(struct weir_heavy *heavy, const char *name, const char *text, unsigned number,
                struct weir_heavy_use saw)
{
    uint64_t hash[2] = {number * UINT64_C(0x9e3779b97f4a7c15) + 1, number};
    bool fresh;
    struct weir_heavy_use *use = weir_heavy_count(heavy, hash, 1, &fresh);

    if (fresh)
        weir_heavy_name(heavy, (struct weir_bytes){name, strlen(name)},
                        (struct weir_bytes){text, strlen(text)});
    use->denied += saw.denied;
}

static struct weir_heavy *empty(void)
{
    struct weir_heavy *heavy;

    totals = (struct weir_totals){0};
    assert_int_equal(weir_heavy_open(&heavy, ROOM), 0);
    return heavy;
}

static const struct weir_totals_row *row_of(enum weir_totals_family family, const char *name)
{
    const struct weir_totals_row *found = NULL;

    for (unsigned i = 0; i <= WEIR_TOTALS_NAMES; i++) {
        const char *of = weir_totals_name(&totals, family, i);
        if (!of || strcmp(of, name) != 0)
            continue;
        assert_null(found); /* a name has one series */
        found = &totals.rows[family][i];
    }
    assert_non_null(found);
    return found;
}

TEST("requests of routes that made room count as other, and none is lost")
{
    struct weir_heavy *heavy = empty();
    uint64_t sum = 0;

    for (unsigned i = 0; i < 100; i++) {
        char text[16];
        snprintf(text, sizeof text, "/r%u", i);
        see(heavy, WEIR_USE_ROUTE, text, i, (struct weir_heavy_use){.denied = 1});
    }
    weir_totals_places(&totals, heavy);
    for (unsigned i = 0; i < WEIR_TOTALS_NAMES; i++) {
        const struct weir_totals_row *row = &totals.rows[WEIR_TOTALS_ROUTES][i];
        sum += row->count;
        assert_int_equal(row->count, weir_totals_name(&totals, WEIR_TOTALS_ROUTES, i) ? 1 : 0);
        assert_int_equal(row->denied, row->count);
    }
    assert_int_equal(sum, ROOM);
    assert_int_equal(row_of(WEIR_TOTALS_ROUTES, "other")->count, 100 - ROOM);
    weir_heavy_close(heavy);
}

TEST("bursts of limits that made room count as other, and none is lost")
{
    struct weir_heavy *heavy = empty();
    uint64_t sum = 0;

    for (unsigned i = 0; i < 30; i++) {
        char name[16];
        snprintf(name, sizeof name, "l%u", i);
        see(heavy, name, "", i, (struct weir_heavy_use){.denied = 0});
    }
    weir_totals_bursts(&totals, heavy);
    for (unsigned i = 0; i <= WEIR_TOTALS_NAMES; i++)
        sum += totals.rows[WEIR_TOTALS_BURSTS][i].count;
    assert_int_equal(sum, 30);
    assert_int_equal(row_of(WEIR_TOTALS_BURSTS, "other")->count, 30 - ROOM);
    weir_heavy_close(heavy);
}

TEST("a limit that is called other shares the series of all others")
{
    struct weir_heavy *heavy = empty();
    struct weir_denial denial = {.limit = "other", .limit_size = 5, .retry_after_ns = 1};

    for (unsigned i = 0; i < 2; i++)
        for (unsigned j = 0; j < 3; j++)
            see(heavy, i == 0 ? "other" : "api", "", i, (struct weir_heavy_use){.denied = 0});
    weir_totals_bursts(&totals, heavy);
    assert_int_equal(row_of(WEIR_TOTALS_BURSTS, "other")->count, 3);
    assert_int_equal(row_of(WEIR_TOTALS_BURSTS, "api")->count, 3);
    weir_totals_denial(&totals, &denial);
    for (unsigned i = 0; i < WEIR_TOTALS_NAMES + 2; i++) {
        denial.limit_size = (uint8_t)snprintf(denial.limit, sizeof denial.limit, "l%u", i);
        weir_totals_denial(&totals, &denial);
    }
    assert_int_equal(row_of(WEIR_TOTALS_WAITS, "other")->count, 3);
    weir_heavy_close(heavy);
}

RUN_TESTS()
