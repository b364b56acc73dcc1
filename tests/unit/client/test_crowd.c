/* SPDX-License-Identifier: Apache-2.0 */
/* The pace of clients apart: when a crowd is noticed, what it holds, and when it is gone. How a
 * hundred of them fare together is in test_quota.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "client/pace/crowd.h"
#include "test.h"

#define S UINT64_C(1000000000)
#define START (1000000 * S)
#define WINDOW (10 * S)
#define YEAR (365 * 86400 * S)

/* One client under 100 in 10 s, in the window that begins at START. */
struct run {
    struct weir_crowd crowd;
    uint64_t now_ns, seed, unseen;
};

static bool answer(struct run *run, uint64_t used)
{
    uint64_t end_ns = run->now_ns + WINDOW - (run->now_ns - START) % WINDOW;
    struct weir_crowd_view view = {.limit = 100,
                                   .window_ns = WINDOW,
                                   .remaining = 100 - used,
                                   .reset_lo_ns = end_ns,
                                   .reset_hi_ns = end_ns,
                                   .now_ns = run->now_ns,
                                   .unseen = run->unseen};

    run->unseen = 0;
    return weir_crowd_learn(&run->crowd, &view, &run->seed);
}

/* Goes to when the next request is allowed, and sends it. */
static void go(struct run *run)
{
    uint64_t when = run->crowd.state == WEIR_CROWD_NONE
                        ? 0
                        : weir_crowd_when(&run->crowd, UINT64_MAX, UINT64_MAX, run->now_ns);

    run->now_ns = when > run->now_ns ? when : run->now_ns + S / 10;
    weir_crowd_send(&run->crowd, WINDOW, 0, run->now_ns);
}

/* The same, and learns what an even use of so much in a window has used by then. */
static bool next(struct run *run, uint64_t in_window)
{
    go(run);
    uint64_t used = 1 + (run->now_ns - START) % WINDOW * in_window / WINDOW;
    return answer(run, used < 100 ? used : 100);
}

static struct run one(uint64_t seed)
{
    return (struct run){.now_ns = START + S / 100, .seed = seed, .unseen = 1};
}

TEST("one that is alone is no crowd")
{
    struct run run = one(1);

    for (uint64_t used = 1; used <= 50; used++) {
        if (used > 1)
            go(&run);
        assert_false(answer(&run, used));
        assert_int_equal(run.crowd.state, WEIR_CROWD_NONE);
    }
    /* Another one that uses as much is none, either: pacer.h measures its share. */
    go(&run);
    assert_false(answer(&run, 100));
    assert_int_equal(run.crowd.state, WEIR_CROWD_NONE);
}

TEST("many others are noticed and the part is kept")
{
    for (uint64_t seed = 1; seed <= 100; seed++) {
        struct run run = one(seed);
        (void)answer(&run, 20);
        assert_int_equal(run.crowd.state, WEIR_CROWD_FINDING);
        /* The second one goes in the first eighth of the window. */
        uint64_t when = weir_crowd_when(&run.crowd, UINT64_MAX, UINT64_MAX, run.now_ns);
        assert_true(when > run.now_ns && when < START + WINDOW / 8);
        go(&run);
        (void)answer(&run, 30);
        assert_true(run.crowd.clients >= 15 && run.crowd.clients <= 30);
        for (int i = 0; i < 20 && run.crowd.state == WEIR_CROWD_FINDING; i++)
            (void)next(&run, 99);
        assert_int_equal(run.crowd.state, WEIR_CROWD_HOLDING);
        uint32_t slots = run.crowd.slots;
        assert_true(slots >= 2 && slots <= 8);
        assert_int_equal(weir_crowd_interval(&run.crowd, WINDOW, 0),
                         (WINDOW + WINDOW / 250) / slots);
    }
}

TEST("one that sees no room waits for the reset")
{
    for (uint64_t seed = 1; seed <= 100; seed++) {
        struct run run = one(seed);
        (void)answer(&run, 80);
        uint64_t when = weir_crowd_when(&run.crowd, UINT64_MAX, UINT64_MAX, run.now_ns);
        assert_true(when >= START + WINDOW && when <= START + WINDOW * 8 / 5);
    }
}

/* Holds so many slots; all of the limit is used. */
static struct run holding(uint32_t slots)
{
    struct run run = one(7);

    (void)answer(&run, 20);
    run.crowd.admitted = slots + 1;
    weir_crowd_refused(&run.crowd);
    assert_int_equal(run.crowd.state, WEIR_CROWD_HOLDING);
    assert_int_equal(run.crowd.slots, slots);
    run.now_ns = START + WINDOW + S / 2;
    return run;
}

/* A process before it has used a part: nobody else sends now. */
TEST("one that follows another is alone after a moment")
{
    for (uint64_t seed = 1; seed <= 100; seed++) {
        struct run run = one(seed);
        uint64_t used = 40;
        (void)answer(&run, used);
        assert_int_equal(run.crowd.state, WEIR_CROWD_FINDING);
        go(&run);
        assert_true(run.now_ns <= START + 2 * S);
        assert_true(answer(&run, ++used));
        while (used < 100) {
            assert_int_equal(run.crowd.state, WEIR_CROWD_NONE);
            go(&run);
            assert_false(answer(&run, ++used));
        }
    }
}

TEST("a refusal takes a slot")
{
    struct run run = holding(3);

    for (uint32_t slots = 3; slots-- > 0;) {
        weir_crowd_refused(&run.crowd);
        assert_int_equal(run.crowd.slots, slots);
    }
    weir_crowd_refused(&run.crowd);
    assert_int_equal(run.crowd.slots, 0);
    assert_int_equal(weir_crowd_interval(&run.crowd, WINDOW, 0), WINDOW + WINDOW / 250);
}

TEST("slots grow by what stays unused and shrink above the limit")
{
    static const uint64_t uses[] = {50, 99, 130};

    for (size_t i = 0; i < 3; i++) {
        struct run run = holding(8);
        for (int sent = 0; sent < 32 && run.crowd.slots <= 16; sent++)
            (void)next(&run, uses[i]);
        if (i == 0)
            assert_true(run.crowd.slots > 16);
        else if (i == 1)
            assert_true(run.crowd.slots >= 7 && run.crowd.slots <= 9);
        else
            assert_true(run.crowd.slots < 8);
    }
}

TEST("what is left over goes at once to one with little left")
{
    struct run run = holding(8);

    for (int sent = 0; sent < 100 && run.crowd.spare < 20; sent++)
        (void)next(&run, 40);
    assert_true(weir_crowd_when(&run.crowd, 5, UINT64_MAX, run.now_ns) == run.now_ns);
    assert_true(weir_crowd_when(&run.crowd, 90, UINT64_MAX, run.now_ns) > run.now_ns);
    assert_true(weir_crowd_when(&run.crowd, UINT64_MAX, 1, run.now_ns) == run.now_ns);
    assert_true(weir_crowd_when(&run.crowd, UINT64_MAX, 10, run.now_ns) > run.now_ns);
}

TEST("slots that are not used are gone")
{
    struct run run = holding(8);

    (void)next(&run, 50);
    run.now_ns += 3 * WINDOW;
    weir_crowd_send(&run.crowd, WINDOW, 0, run.now_ns);
    assert_int_equal(run.crowd.state, WEIR_CROWD_NONE);
    (void)answer(&run, 30);
    assert_int_equal(run.crowd.state, WEIR_CROWD_FINDING);
    assert_int_equal(run.crowd.admitted, 1);
}

TEST("a crowd is gone where nobody else sends")
{
    struct run run = holding(4);
    bool gone = false;

    for (int i = 0; i < 8 && !gone; i++)
        gone = next(&run, 4);
    assert_true(gone);
    assert_int_equal(run.crowd.state, WEIR_CROWD_NONE);
}

TEST("what a file holds is checked")
{
    struct weir_crowd crowd = holding(4).crowd;
    uint64_t most = START + 100 * WINDOW;

    assert_true(weir_crowd_valid(&(struct weir_crowd){0}, most));
    assert_true(weir_crowd_valid(&crowd, most));
    assert_false(weir_crowd_valid(&crowd, START));
    crowd.next_ns = 2 * YEAR; /* a pace that would stop the client for a year */
    assert_false(weir_crowd_valid(&crowd, YEAR));
    crowd.next_ns = 0;
    crowd.state = 3;
    assert_false(weir_crowd_valid(&crowd, most));
    for (uint64_t seed = 1; seed <= 100000; seed++) {
        uint64_t dice = seed;
        unsigned char bytes[sizeof crowd];
        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = (unsigned char)(weir_random_up_to(&dice, 15) ? 0 : weir_random(&dice));
        memcpy(&crowd, bytes, sizeof crowd);
        if (!weir_crowd_valid(&crowd, most))
            continue;
        struct run run = {.crowd = crowd, .now_ns = START + S, .seed = seed};
        for (uint64_t used = 1; used <= 100; used += 9) {
            weir_crowd_send(&run.crowd, WINDOW, 0, run.now_ns += S);
            (void)answer(&run, used);
            if (used % 2 == 0)
                weir_crowd_refused(&run.crowd);
            assert_true(run.crowd.slots <= WEIR_CROWD_SLOTS_MOST);
            assert_true(weir_crowd_interval(&run.crowd, WINDOW, 0) <= 2 * WINDOW);
        }
    }
}

RUN_TESTS()
