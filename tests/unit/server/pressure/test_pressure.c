/* SPDX-License-Identifier: Apache-2.0 */
/* Keys without room: reported at the first, then once a minute, and never in a flood. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "server/pressure/pressure.h"

#define SECOND UINT64_C(1000000000)
#define START (1700000000 * SECOND)
#define MANY 10000

static struct weir_table_account accounts[MANY];
static struct weir_pressure_report report;

/* Accounts 1, 2, ... that have nothing yet, looked at for the first time. */
static struct weir_pressure *begin(uint32_t count)
{
    struct weir_pressure *pressure;
    memset(accounts, 0, sizeof accounts);
    for (uint32_t i = 0; i < count; i++)
        accounts[i].name = i + 1;
    assert_int_equal(weir_pressure_open(&pressure, count), 0);
    weir_pressure_look(pressure, START, accounts, &report);
    assert_int_equal(report.count + report.more, 0);
    return pressure;
}

static void look(struct weir_pressure *pressure, uint64_t seconds)
{
    weir_pressure_look(pressure, START + seconds * SECOND, accounts, &report);
}

static void expect_line(uint32_t i, uint64_t name, uint64_t evictions, uint64_t overflows)
{
    assert_true(i < report.count);
    assert_int_equal(report.lines[i].name, name);
    assert_int_equal(report.lines[i].stats.evictions, evictions);
    assert_int_equal(report.lines[i].stats.overflows, overflows);
}

static void expect_nothing(void)
{
    assert_int_equal(report.count, 0);
    assert_int_equal(report.more, 0);
}

static void where_nothing_happens_nothing_is_reported(void **state)
{
    struct weir_pressure_recent recent;
    struct weir_pressure *pressure;
    memset(accounts, 0, sizeof accounts);
    accounts[1] = (struct weir_table_account){7, {5, 6}}; /* of before the start */
    assert_int_equal(weir_pressure_open(&pressure, 3), 0);
    for (uint64_t second = 0; second < 200; second++) {
        look(pressure, second);
        expect_nothing();
    }
    weir_pressure_recent(pressure, &recent);
    assert_int_equal(recent.accounts + recent.count, 0);
    weir_pressure_close(pressure);
}

static void what_no_machine_can_have_counted_is_damage_and_not_reported(void **state)
{
    struct weir_pressure_recent recent;
    struct weir_pressure *pressure = begin(2);
    accounts[0].stats.evictions = UINT64_MAX; /* as of a page of 0xff */
    accounts[1].stats.overflows = UINT64_C(1) << 63;
    look(pressure, 1);
    expect_nothing();
    weir_pressure_recent(pressure, &recent);
    assert_int_equal(recent.accounts, 0);
    accounts[0].stats.evictions = 3; /* it began anew */
    look(pressure, 2);
    assert_int_equal(report.count, 1);
    expect_line(0, 1, 3, 0);
    weir_pressure_close(pressure);
}

static void
the_first_of_each_is_reported_at_once_and_then_once_a_minute_with_what_came_since(void **state)
{
    struct weir_pressure *pressure = begin(3);
    accounts[1].stats.evictions = 1;
    look(pressure, 1);
    assert_int_equal(report.count, 1);
    expect_line(0, 2, 1, 0);
    accounts[1].stats.evictions = 4;
    look(pressure, 2);
    expect_nothing();
    accounts[1].stats.overflows = 10; /* the first, and what came of the others */
    look(pressure, 3);
    assert_int_equal(report.count, 1);
    expect_line(0, 2, 3, 10);
    for (uint64_t second = 4; second < 300; second++) {
        accounts[1].stats.overflows += 2;
        look(pressure, second);
        assert_int_equal(report.more, 0);
        if ((second - 3) % 60 == 0)
            expect_line(0, 2, 0, 120);
        else
            expect_nothing();
    }
    look(pressure, 302); /* it is over: the rest of a minute comes once it is full */
    expect_nothing();
    look(pressure, 304);
    assert_int_equal(report.count, 1);
    expect_line(0, 2, 0, 2 * (299 - 243));
    look(pressure, 400);
    expect_nothing();
    accounts[1].stats.evictions++;
    look(pressure, 1000); /* after a pause at once */
    expect_line(0, 2, 1, 0);
    weir_pressure_close(pressure);
}

static void a_flood_of_limits_is_a_few_lines_a_minute_and_one_for_the_others(void **state)
{
    struct weir_pressure *pressure = begin(MANY);
    uint64_t result = 0, happened = 0;
    uint32_t lines = 0, sums = 0;
    for (uint64_t second = 1; second <= 240; second++) {
        for (uint32_t i = 0; i < MANY && second < 120; i++) {
            accounts[i].stats.overflows += i + 1;
            happened += i + 1;
        }
        look(pressure, second);
        for (uint32_t i = 0; i < report.count; i++)
            result += report.lines[i].stats.overflows;
        result += report.others.overflows;
        lines += report.count;
        sums += report.more > 0;
        if (second == 1) { /* those with most by name */
            assert_int_equal(report.more, MANY - WEIR_PRESSURE_LINES);
            for (uint32_t i = 0; i < WEIR_PRESSURE_LINES; i++)
                expect_line(i, MANY - i, 0, MANY - i);
        }
        /* In any minute, wherever it begins: those of two of the module's. */
        assert_true(lines <= (second / 60 + 2) * WEIR_PRESSURE_LINES);
        assert_true(sums <= second / 60 + 2);
    }
    assert_int_equal(result, happened);
    assert_true(lines >= 2 * WEIR_PRESSURE_LINES);
    weir_pressure_close(pressure);
}

static void a_limit_in_the_place_of_another_begins_anew(void **state)
{
    struct weir_pressure *pressure = begin(2);
    accounts[0].stats.evictions = 100;
    look(pressure, 1);
    expect_line(0, 1, 100, 0);
    accounts[0] = (struct weir_table_account){9, {3, 0}};
    look(pressure, 2);
    assert_int_equal(report.count, 1);
    expect_line(0, 9, 3, 0);
    accounts[0].stats.evictions = 2; /* it has gone and come back */
    look(pressure, 100);
    expect_line(0, 9, 2, 0);
    weir_pressure_close(pressure);
}

static void what_came_lately_is_reported_for_one_to_two_minutes(void **state)
{
    struct weir_pressure *pressure = begin(10);
    struct weir_pressure_recent recent;
    look(pressure, 0);
    for (uint32_t i = 0; i < 5; i++)
        accounts[i].stats = (struct weir_table_limit_stats){i, 10 * i};
    look(pressure, 1);
    for (uint64_t second = 1; second < 125; second++) {
        look(pressure, second);
        weir_pressure_recent(pressure, &recent);
        if (second < 60) {
            assert_int_equal(recent.accounts, 4);
            assert_int_equal(recent.count, WEIR_PRESSURE_BUSIEST);
            assert_int_equal(recent.all.evictions, 10);
            assert_int_equal(recent.all.overflows, 100);
            assert_int_equal(recent.busiest[0].name, 5);
            assert_int_equal(recent.busiest[2].name, 3);
            assert_int_equal(recent.busiest[2].stats.overflows, 20);
        }
    }
    assert_int_equal(recent.accounts + recent.count, 0);
    weir_pressure_close(pressure);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(where_nothing_happens_nothing_is_reported),
        cmocka_unit_test(what_no_machine_can_have_counted_is_damage_and_not_reported),
        cmocka_unit_test(
            the_first_of_each_is_reported_at_once_and_then_once_a_minute_with_what_came_since),
        cmocka_unit_test(a_flood_of_limits_is_a_few_lines_a_minute_and_one_for_the_others),
        cmocka_unit_test(a_limit_in_the_place_of_another_begins_anew),
        cmocka_unit_test(what_came_lately_is_reported_for_one_to_two_minutes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
