/* SPDX-License-Identifier: Apache-2.0 */
/* Steps in memory: random changes against a plain list, and what the history gets of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/bytes.h"
#include "draw.h"
#include "feature/penalties/server/ladder_memory.h"
#include "test.h"

#define S UINT64_C(1000000000)
#define VALUES 300
#define PENALTIES 4

static const uint64_t secret[2] = {1, 2};

/* What a value has of a penalty, in a plain table; gone_ns 0: nothing. */
static struct {
    struct weir_ladder_state state;
    uint64_t gone_ns;
} model[VALUES][PENALTIES];

static struct weir_ladder_memory memory;

static int open_memory(void **state)
{
    memset(model, 0, sizeof model);
    return weir_ladder_memory_init(&memory, secret);
}

static int close_memory(void **state)
{
    weir_ladder_memory_free(&memory);
    return 0;
}

static struct weir_bytes name_of(char room[16], char kind, unsigned number)
{
    snprintf(room, 16, "%c%u", kind, number);
    return weir_bytes_of(room);
}

static void add(unsigned value, unsigned penalty, uint64_t step, uint64_t gone_ns)
{
    char value_name[16], penalty_name[16];
    const struct weir_history_ladder ladder = {.penalty = name_of(penalty_name, 'p', penalty),
                                               .kind = weir_bytes_of("user"),
                                               .value = name_of(value_name, 'u', value),
                                               .gone_ns = gone_ns,
                                               .state = {.step = (uint8_t)step, .until_ns = step}};

    assert_int_equal(weir_ladder_memory_add(&memory, &ladder), 0);
    if (model[value][penalty].gone_ns == 0) { /* what is there stays */
        model[value][penalty].state = ladder.state;
        model[value][penalty].gone_ns = gone_ns;
    }
}

static void clear(unsigned value)
{
    char name[16];
    bool any = false;

    for (unsigned penalty = 0; penalty < PENALTIES; penalty++) {
        any |= model[value][penalty].gone_ns != 0;
        model[value][penalty].gone_ns = 0;
    }
    assert_int_equal(
        weir_ladder_memory_clear(&memory, weir_bytes_of("user"), name_of(name, 'u', value)), any);
}

static void expect(unsigned value)
{
    struct weir_keeper_ladders found;
    uint32_t count = 0;
    char name[16];

    weir_ladder_memory_find(&memory, weir_bytes_of("user"), name_of(name, 'u', value), &found);
    for (unsigned penalty = 0; penalty < PENALTIES; penalty++) {
        bool seen = false;

        for (uint32_t i = 0; i < found.count; i++)
            if (found.ladders[i].penalty[1] == (char)('0' + penalty)) {
                assert_int_equal(found.ladders[i].state.step, model[value][penalty].state.step);
                seen = true;
            }
        assert_int_equal(seen, model[value][penalty].gone_ns != 0);
        count += seen;
    }
    assert_int_equal(found.count, count);
}

static void sweep(uint64_t now_ns)
{
    for (unsigned i = 0; i < 3; i++) /* more slots than one sweep looks at: never here */
        weir_ladder_memory_sweep(&memory, now_ns);
    for (unsigned value = 0; value < VALUES; value++)
        for (unsigned penalty = 0; penalty < PENALTIES; penalty++)
            if (model[value][penalty].gone_ns <= now_ns)
                model[value][penalty].gone_ns = 0;
}

TEST_WITH(open_memory, close_memory, "random changes agree with a plain table")
{
    uint64_t random = 7, now_ns = S;

    for (unsigned i = 0; i < 60000; i++) {
        unsigned value = (unsigned)(draw_below(&random, VALUES));
        unsigned penalty = (unsigned)(draw_below(&random, PENALTIES));

        switch (draw_below(&random, 10)) {
        case 0:
            clear(value);
            break;
        case 1:
            if (i % 50 == 0)
                sweep(now_ns += S);
            break;
        default:
            add(value, penalty, 1 + draw_below(&random, 9),
                now_ns + (1 + draw_below(&random, 9)) * S);
        }
        expect(value);
        expect((unsigned)(draw_below(&random, VALUES)));
    }
}

TEST_WITH(open_memory, close_memory, "names are bounded")
{
    struct weir_history_ladder ladder = {.kind = weir_bytes_of("user"),
                                         .value = weir_bytes_of("ada"),
                                         .gone_ns = WEIR_NEVER,
                                         .state.step = 1};
    char name[16];

    for (unsigned i = 0; i < WEIR_LADDER_NAMES_MAX; i++) {
        ladder.penalty = name_of(name, 'p', i);
        assert_int_equal(weir_ladder_memory_add(&memory, &ladder), 0);
    }
    ladder.penalty = weir_bytes_of("more");
    assert_int_equal(weir_ladder_memory_add(&memory, &ladder), WEIR_ERR_FULL);
    ladder.penalty = weir_bytes_of("p0");
    assert_int_equal(weir_ladder_memory_add(&memory, &ladder), 0);
}

RUN_TESTS()
