/* SPDX-License-Identifier: Apache-2.0 */
/* The ladder of a penalty: which step, until when, what is forgiven. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "draw.h"
#include "feature/standing/ladder.h"
#include "test.h"

#define MINUTE UINT64_C(60000000000)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)
#define START (UINT64_C(1700000000) * UINT64_C(1000000000))

/* [warn 1h, throttle 1h, suspend 10min, suspend 1d], forgive: 1d */
static const struct weir_ladder ladder = {.forgive_ns = DAY,
                                          .count = 4,
                                          .steps = {{HOUR, WEIR_STANDING_WARNED},
                                                    {HOUR, WEIR_STANDING_THROTTLED},
                                                    {10 * MINUTE, WEIR_STANDING_SUSPENDED},
                                                    {DAY, WEIR_STANDING_SUSPENDED}}};

static void expect_move(struct weir_ladder_state *state, uint64_t now_ns, uint8_t step,
                        uint8_t level, uint64_t until_ns)
{
    assert_int_equal(weir_ladder_move(&ladder, state, now_ns)->level, level);
    assert_int_equal(state->step, step);
    assert_int_equal(state->until_ns, until_ns);
}

TEST("each move is one step and the last is begun anew")
{
    struct weir_ladder_state value = {0};
    expect_move(&value, START, 1, WEIR_STANDING_WARNED, START + HOUR);
    expect_move(&value, START + 1, 2, WEIR_STANDING_THROTTLED, START + 1 + HOUR);
    expect_move(&value, START + 2, 3, WEIR_STANDING_SUSPENDED, START + 2 + 10 * MINUTE);
    expect_move(&value, START + DAY, 4, WEIR_STANDING_SUSPENDED, START + 2 * DAY);
    expect_move(&value, START + DAY + 5, 4, WEIR_STANDING_SUSPENDED, START + 2 * DAY + 5);
}

TEST("a step is forgiven to the nanosecond after the end of the term")
{
    struct weir_ladder_state value = {0};
    weir_ladder_move(&ladder, &value, START);
    weir_ladder_move(&ladder, &value, START);
    uint64_t end = START + HOUR;
    assert_int_equal(weir_ladder_forgive(&ladder, &value, end + DAY - 1), 0);
    assert_int_equal(value.step, 2);
    assert_int_equal(weir_ladder_forgive(&ladder, &value, end + DAY), 1);
    assert_int_equal(value.step, 1);
    assert_int_equal(weir_ladder_forgive(&ladder, &value, end + 2 * DAY - 1), 0);
    assert_int_equal(weir_ladder_forgive(&ladder, &value, end + 2 * DAY), 1);
    assert_int_equal(value.step, 0);
    assert_int_equal(weir_ladder_forgive(&ladder, &value, end + 9 * DAY), 0);
    expect_move(&value, end + 9 * DAY, 1, WEIR_STANDING_WARNED, end + 9 * DAY + HOUR);
}

TEST("several steps are forgiven at once")
{
    struct weir_ladder_state value = {0};
    for (int i = 0; i < 3; i++)
        weir_ladder_move(&ladder, &value, START);
    uint64_t end = START + 10 * MINUTE;
    expect_move(&value, end + 2 * DAY + HOUR, 2, WEIR_STANDING_THROTTLED,
                end + 2 * DAY + 2 * HOUR); /* two were forgiven */
}

TEST("a strike begins the time without one anew")
{
    struct weir_ladder_state value = {0};
    weir_ladder_move(&ladder, &value, START);
    weir_ladder_strike(&ladder, &value,
                       START + MINUTE); /* within the term: it counts from its end */
    assert_int_equal(weir_ladder_forgive(&ladder, &value, START + HOUR + DAY - 1), 0);
    weir_ladder_strike(&ladder, &value, START + HOUR + DAY - 1);
    assert_int_equal(weir_ladder_forgive(&ladder, &value, START + HOUR + 2 * DAY - 2), 0);
    assert_int_equal(weir_ladder_forgive(&ladder, &value, START + HOUR + 2 * DAY - 1), 1);
}

TEST("a revocation is never forgiven")
{
    const struct weir_ladder short_ladder = {
        .forgive_ns = 1, .count = 1, .steps = {{WEIR_NEVER, WEIR_STANDING_REVOKED}}};
    struct weir_ladder_state value = {0};
    weir_ladder_move(&short_ladder, &value, START);
    assert_int_equal(value.until_ns, WEIR_NEVER);
    assert_int_equal(weir_ladder_forgive(&short_ladder, &value, WEIR_NEVER - 1), 0);
    weir_ladder_strike(&short_ladder, &value, WEIR_NEVER - 1);
    assert_int_equal(value.step, 1);
}

TEST("without forgive nothing is forgiven")
{
    struct weir_ladder strict = ladder;
    struct weir_ladder_state value = {0};
    strict.forgive_ns = 0;
    weir_ladder_move(&strict, &value, START);
    assert_int_equal(weir_ladder_forgive(&strict, &value, START + 1000 * DAY), 0);
}

TEST("a clock that goes back forgives nothing")
{
    struct weir_ladder_state value = {0};
    weir_ladder_move(&ladder, &value, START);
    weir_ladder_strike(&ladder, &value, START + 30 * HOUR); /* forgives one */
    assert_int_equal(value.step, 0);
    weir_ladder_move(&ladder, &value, START + 40 * HOUR);
    assert_int_equal(weir_ladder_forgive(&ladder, &value, START), 0);
    weir_ladder_strike(&ladder, &value, START);
    assert_int_equal(weir_ladder_forgive(&ladder, &value, START + 41 * HOUR + DAY - 1), 0);
    assert_int_equal(weir_ladder_forgive(&ladder, &value, START + 41 * HOUR + DAY), 1);
}

/* Tick by tick: a step goes whenever it has been clean for `forgive`. */
TEST("a state above a shorter ladder is at its last step")
{
    struct weir_ladder_state at = {.until_ns = 5, .clean_ns = 5, .step = 9};
    struct weir_ladder shorter = ladder;

    shorter.count = 2;
    assert_ptr_equal(weir_ladder_at(&shorter, &at), &shorter.steps[1]);
    assert_ptr_equal(weir_ladder_move(&shorter, &at, 7), &shorter.steps[1]);
    assert_int_equal(at.step, 2);
    assert_int_equal(at.until_ns, 7 + shorter.steps[1].term_ns);
    at.step = 0;
    assert_null(weir_ladder_at(&shorter, &at));
}

TEST("all is forgiven when each step is")
{
    struct weir_ladder_state at = {.step = 0}, later;

    assert_int_equal(weir_ladder_gone_ns(&ladder, &at), 0);
    weir_ladder_move(&ladder, &at, 1000);
    weir_ladder_move(&ladder, &at, 2000);
    uint64_t gone_ns = weir_ladder_gone_ns(&ladder, &at);
    assert_int_equal(gone_ns, at.clean_ns + 2 * ladder.forgive_ns);
    later = at;
    assert_int_equal(weir_ladder_forgive(&ladder, &later, gone_ns - 1), 1);
    later = at;
    assert_int_equal(weir_ladder_forgive(&ladder, &later, gone_ns), 2);
    at.clean_ns = WEIR_NEVER;
    assert_int_equal(weir_ladder_gone_ns(&ladder, &at), WEIR_NEVER);
}

TEST("random strikes move as a clock that ticks says")
{
    uint64_t random = 7;
    for (int round = 0; round < 2000; round++) {
        struct weir_ladder small = {.forgive_ns = 1 + draw_below(&random, 8),
                                    .count = (uint8_t)(1 + draw_below(&random, 5))};
        struct weir_ladder_state value = {0};
        uint64_t clean = 0, until = 0;
        unsigned step = 0;
        for (unsigned i = 0; i < small.count; i++)
            small.steps[i] = (struct weir_ladder_step){1 + draw_below(&random, 9),
                                                       (uint8_t)(1 + draw_below(&random, 4))};
        for (uint64_t now = 1; now < 200; now++) {
            if (step > 0 && now - clean == small.forgive_ns && now > clean) {
                step--;
                clean = now;
            }
            uint64_t what = draw_below(&random, 12);
            if (what == 0) {
                step += step < small.count;
                until = clean = now + small.steps[step - 1].term_ns;
                assert_ptr_equal(weir_ladder_move(&small, &value, now), &small.steps[step - 1]);
                assert_int_equal(value.until_ns, until);
            } else if (what == 1) {
                clean = now > clean ? now : clean;
                weir_ladder_strike(&small, &value, now);
            } else if (what == 2) {
                weir_ladder_forgive(&small, &value, now);
            }
            if (what <= 2)
                assert_int_equal(value.step, step);
        }
    }
}

static int minutes(uint64_t *duration_ns, const char *text, size_t size, struct weir_reason *reason)
{
    *duration_ns = (uint64_t)(text[0] - '0') * MINUTE;
    if (size == 4 && memcmp(text + 1, "min", 3) == 0)
        return 0;
    strcpy(reason->text, "not a duration");
    return WEIR_ERR_SYNTAX;
}

TEST("steps are read as the rules write them")
{
    static const struct {
        const char *text;
        uint8_t level;
        uint64_t term_ns;
        const char *reason; /* NULL: it is good */
    } cases[] = {
        {"warn 5min", WEIR_STANDING_WARNED, 5 * MINUTE, NULL},
        {"throttle 1min", WEIR_STANDING_THROTTLED, MINUTE, NULL},
        {"challenge 2min", WEIR_STANDING_CHALLENGED, 2 * MINUTE, NULL},
        {"suspend 9min", WEIR_STANDING_SUSPENDED, 9 * MINUTE, NULL},
        {"revoke", WEIR_STANDING_REVOKED, WEIR_NEVER, NULL},
        {"revoke 1min", 0, 0, "`revoke` has no end: remove the duration"},
        {"warn", 0, 0, "warn needs a duration, such as `10min`"},
        {"suspend ", 0, 0, "suspend needs a duration, such as `10min`"},
        {"suspend 0min", 0, 0, "the duration of a step must be more than 0"},
        {"suspend soon", 0, 0, "not a duration"},
        {"suspended 1min", 0, 0,
         "a step is warn, throttle, challenge or suspend and a duration, such as `suspend 10min`, "
         "or `revoke`"},
        {"", 0, 0,
         "a step is warn, throttle, challenge or suspend and a duration, such as `suspend 10min`, "
         "or `revoke`"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct weir_ladder_step step;
        struct weir_reason reason = {{0}};
        const struct weir_bytes text = {cases[i].text, strlen(cases[i].text)};
        int err = weir_ladder_step_parse(&step, text, minutes, &reason);
        assert_int_equal(err < 0, cases[i].reason != NULL);
        if (err < 0) {
            assert_string_equal(reason.text, cases[i].reason);
            continue;
        }
        assert_int_equal(step.level, cases[i].level);
        assert_int_equal(step.term_ns, cases[i].term_ns);
    }
}

RUN_TESTS()
