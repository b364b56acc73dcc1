/* SPDX-License-Identifier: Apache-2.0 */
/* A table of health: worst rows, products, the floor, and a scale that falls at once and rises
 * after the hysteresis. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "feature/adaptive/health.h"
#include "test.h"

#define S UINT64_C(1000000000)

static const struct weir_health_spec spec = {
    .rows = {{WEIR_SIGNAL_CPU, 80, 6000},
             {WEIR_SIGNAL_CPU, 50, 8000},
             {WEIR_SIGNAL_P99, 80, S},
             {WEIR_SIGNAL_P99, 60, 2 * S},
             {WEIR_SIGNAL_P99, 30, 5 * S},
             {WEIR_SIGNAL_ERRORS, 70, 100},
             {WEIR_SIGNAL_ERRORS, 40, 500}},
    .count = 7,
    .floor_percent = 10,
    .hysteresis_ns = 10 * S,
};

struct fixture {
    struct weir_health health;
    struct weir_reading readings[WEIR_SIGNALS];
};

static void begin(struct fixture *fixture)
{
    *fixture = (struct fixture){0};
    weir_health_init(&fixture->health);
}

static void set(struct fixture *fixture, int signal, uint64_t value)
{
    fixture->readings[signal] = (struct weir_reading){value, UINT64_MAX};
}

static uint8_t at(struct fixture *fixture, uint64_t now_ns)
{
    return weir_health_update(&fixture->health, &spec, fixture->readings, now_ns);
}

TEST("without readings the scale is whole")
{
    struct fixture fixture;

    begin(&fixture);
    assert_int_equal(at(&fixture, S), 100);
}

TEST("a row counts from its reading on")
{
    struct fixture fixture;

    begin(&fixture);
    set(&fixture, WEIR_SIGNAL_CPU, 5999);
    assert_int_equal(at(&fixture, S), 100);
    set(&fixture, WEIR_SIGNAL_CPU, 6000);
    assert_int_equal(at(&fixture, S), 80);
    set(&fixture, WEIR_SIGNAL_CPU, 8000);
    assert_int_equal(at(&fixture, S), 50);
}

TEST("signals are multiplied down to the floor")
{
    struct fixture fixture;

    begin(&fixture);
    set(&fixture, WEIR_SIGNAL_CPU, 6500);
    set(&fixture, WEIR_SIGNAL_ERRORS, 100);
    assert_int_equal(at(&fixture, S), 56);
    assert_int_equal(fixture.health.causes[WEIR_SIGNAL_CPU], 80);
    assert_int_equal(fixture.health.causes[WEIR_SIGNAL_ERRORS], 70);
    assert_int_equal(fixture.health.causes[WEIR_SIGNAL_P99], 100);
    set(&fixture, WEIR_SIGNAL_CPU, 9000);
    set(&fixture, WEIR_SIGNAL_ERRORS, 10000);
    set(&fixture, WEIR_SIGNAL_P99, 60 * S);
    assert_int_equal(at(&fixture, S), 10); /* 50 % * 40 % * 30 % = 6 % */
}

TEST("an expired reading does not count")
{
    struct fixture fixture;

    begin(&fixture);
    fixture.readings[WEIR_SIGNAL_CPU] = (struct weir_reading){9000, 5 * S};
    assert_int_equal(at(&fixture, 5 * S - 1), 50);
    assert_int_equal(at(&fixture, 5 * S), 50);
    assert_int_equal(fixture.health.causes[WEIR_SIGNAL_CPU], 100);
    assert_int_equal(at(&fixture, 15 * S), 100);
}

TEST("the scale rises after the hysteresis to the least of that time")
{
    struct fixture fixture;

    begin(&fixture);
    set(&fixture, WEIR_SIGNAL_CPU, 9000);
    assert_int_equal(at(&fixture, 100 * S), 50);
    set(&fixture, WEIR_SIGNAL_CPU, 0);
    assert_int_equal(at(&fixture, 101 * S), 50);
    set(&fixture, WEIR_SIGNAL_CPU, 7000);
    assert_int_equal(at(&fixture, 105 * S), 50);
    set(&fixture, WEIR_SIGNAL_CPU, 0);
    assert_int_equal(at(&fixture, 111 * S - 1), 50);
    assert_int_equal(at(&fixture, 111 * S), 80);
    assert_int_equal(at(&fixture, 112 * S), 80);
    assert_int_equal(at(&fixture, 122 * S), 100);
}

/* A signal that swings faster than the hysteresis holds the scale down. */
TEST("a swinging signal holds the scale down")
{
    struct fixture fixture;

    begin(&fixture);
    for (uint64_t second = 1; second <= 600; second++) {
        set(&fixture, WEIR_SIGNAL_CPU, second % 9 == 1 ? 9000 : 0);
        assert_int_equal(at(&fixture, second * S), 50);
    }
}

RUN_TESTS()
