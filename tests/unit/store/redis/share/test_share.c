/* SPDX-License-Identifier: Apache-2.0 */
/* One key's portions: when they end, what a reply and a lost call do, when more is asked for; and
 * the wheel that their holders' timers are in. test_share_explore.c has the orders of events. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/timer_wheel.h"
#include "store/redis/share/share.h"
#include "test.h"

/* When shares are looked at: within a tick of 4.2 ms after they are due. */
#define TICK_NS (UINT64_C(1) << 22)

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)
#define NOW (UINT64_C(5000) * SECOND)

static const struct share_terms terms = {
    .capacity = 1000,
    .life_ns = SECOND,
    .life_long_ns = SECOND,
    .horizon_ns = 100 * MS,
    .batch = 64,
    .chunk = 7,
    .pause_ns = 50 * MS,
    .life_min_ns = SHARE_LIFE_MIN_NS,
    .dry_max_ns = SHARE_DRY_MAX_NS,
    .idle_part = 4,
    .late_returns = true,
};

static void ask(struct share *share, uint64_t id, uint64_t cost, uint64_t now_ns,
                struct share_call *call)
{
    assert_int_equal(share_look(share, &terms, cost, now_ns), SHARE_ASK);
    share_ask(share, &terms, id, cost, now_ns, call);
    assert_int_equal(share_look(share, &terms, cost, now_ns), SHARE_WAIT);
}

static struct share_reply given(uint64_t id, uint64_t amount, uint64_t life_ns)
{
    return (struct share_reply){
        .id = id, .amount = amount, .life_ns = life_ns, .remaining = 500, .renewable = true};
}

/* A share with one portion of so much, asked for at NOW and given at once. */
static struct share with_portion(uint64_t amount, uint64_t life_ns)
{
    struct share share;
    struct share_call call;
    struct share_reply reply = given(1, amount, life_ns);

    share_init(&share, NOW);
    ask(&share, 1, 1, NOW, &call);
    assert_true(share_answered(&share, &terms, &reply, NOW));
    return share;
}

TEST("a portion ends for its holder before it does for the server")
{
    const uint64_t lives[] = {SHARE_LIFE_MIN_NS, 25 * MS, 100 * MS, SECOND};

    for (size_t i = 0; i < sizeof lives / sizeof lives[0]; i++) {
        struct share share = with_portion(64, lives[i]);
        uint64_t last_ns = NOW;

        while (share_left(&share, last_ns + 1000) > 0)
            last_ns += 1000;
        /* The holder's clock may run slower by a thousandth, nearly. */
        assert_true((last_ns - NOW) * 1001 / 1000 < lives[i]);
        assert_true(last_ns - NOW + lives[i] / 500 + 2 * MS > lives[i]);
    }
}

TEST("units that were not admitted go back into their portion")
{
    struct share share = with_portion(64, SECOND);
    struct weir_lent spent;

    share_spend_noted(&share, 10, NOW, &spent);
    assert_int_equal(share_left(&share, NOW), 54);
    assert_int_equal(spent.units[0] + spent.units[1], 10);
    share_unspend(&share, &spent);
    assert_int_equal(share_left(&share, NOW), 64);
}

/* It is settled with the units as used, so they must not be spent again. */
TEST("units of a closed portion stay charged")
{
    struct share share = with_portion(64, SECOND);
    struct share_reply reply = given(2, 30, SECOND);
    struct share_call call;
    struct weir_lent spent;

    share_spend_noted(&share, 64, NOW, &spent);
    ask(&share, 2, 1, NOW, &call);
    assert_int_equal(call.settled[0].used + call.settled[1].used, 64);
    share_unspend(&share, &spent);
    assert_int_equal(share_left(&share, NOW), 0);
    assert_true(share_answered(&share, &terms, &reply, NOW));
    share_unspend(&share, &spent);
    assert_int_equal(share_left(&share, NOW), 30);
    /* nor into a later portion in its place */
    share_spend(&share, 30, NOW);
    ask(&share, 3, 1, NOW, &call);
    reply = given(3, 20, SECOND);
    assert_true(share_answered(&share, &terms, &reply, NOW));
    share_unspend(&share, &spent);
    assert_int_equal(share_left(&share, NOW), 20);
}

TEST("a far holder takes larger portions for longer")
{
    const struct weir_limit_spec spec = {
        .algorithm = WEIR_FIXED_WINDOW, .rate = 1000, .window_ns = 60 * SECOND};
    struct share_terms near, far;
    struct weir_limit limit;

    assert_int_equal(weir_limit_init(&limit, &spec, NULL), 0);
    assert_true(share_terms_init(&near, &limit, 0));
    assert_true(share_terms_lend(&far, &limit, 300 * MS));
    assert_int_equal(far.life_ns, 10 * near.life_ns);
    assert_int_equal(far.horizon_ns, 600 * MS);
    assert_true(far.life_min_ns > 600 * MS);
    /* and not at all where a portion would end on its way */
    limit.segment_ns = 500 * MS;
    assert_false(share_terms_lend(&far, &limit, 300 * MS));
    assert_true(share_terms_lend(&far, &limit, 100 * MS));
    assert_true(share_terms_lend(&far, &limit, 0));
    assert_false(share_terms_lend(&far, &limit, UINT64_MAX));
}

TEST("life counts from when the call was sent")
{
    struct share share;
    struct share_call call;
    struct share_reply reply = given(1, 64, 100 * MS);

    share_init(&share, NOW);
    ask(&share, 1, 1, NOW, &call);
    assert_true(share_answered(&share, &terms, &reply, NOW + 90 * MS));
    assert_int_equal(share_left(&share, NOW + 90 * MS), 64);
    assert_int_equal(share_left(&share, NOW + 99 * MS), 0);

    /* After its end it is not taken at all, and goes back whole. */
    share_init(&share, NOW);
    ask(&share, 1, 1, NOW, &call);
    assert_true(share_answered(&share, &terms, &reply, NOW + 100 * MS));
    assert_int_equal(share_left(&share, NOW), 0);
    assert_true(share_give_back(&share, &terms, 2, NOW + 100 * MS, &call));
    assert_int_equal(call.settled[0].id, 1);
    assert_int_equal(call.settled[0].used, 0);
    assert_int_equal(call.want, 0);
}

TEST("the reply to an earlier call changes nothing")
{
    struct share share, before;
    struct share_call call;
    struct share_reply reply = given(1, 64, 100 * MS);

    share_init(&share, NOW);
    ask(&share, 1, 1, NOW, &call);
    assert_int_equal(share_failed(&share, true), 0);
    before = share;
    assert_false(share_answered(&share, &terms, &reply, NOW));
    assert_memory_equal(&share, &before, sizeof share);
    ask(&share, 2, 1, NOW, &call);
    assert_int_equal(call.settled[0].id + call.settled[1].id, 1);
    assert_false(share_answered(&share, &terms, &reply, NOW));
    assert_int_equal(share_left(&share, NOW), 0);
}

TEST("what was not executed is settled again")
{
    struct share share = with_portion(64, 100 * MS);
    struct share_call call;

    share_spend(&share, 20, NOW);
    assert_true(share_give_back(&share, &terms, 2, NOW, &call));
    assert_int_equal(call.settled[0].used, 20);
    assert_int_equal(share_left(&share, NOW), 0); /* closed for good */
    assert_int_equal(share_failed(&share, false), 0);
    assert_int_equal(share_left(&share, NOW), 0);
    assert_true(share_give_back(&share, &terms, 3, NOW, &call));
    assert_int_equal(call.settled[0].id, 1);
    assert_int_equal(call.settled[0].used, 20);
    /* Perhaps it was, this time: it is not reported again, and counts as lost. */
    assert_int_equal(share_failed(&share, true), 44);
    assert_false(share_give_back(&share, &terms, 4, NOW, &call));
}

TEST("what cannot go back is forfeited")
{
    struct share_terms early = terms;
    struct share share = with_portion(64, 100 * MS);
    struct share_call call;

    early.late_returns = false;
    share_spend(&share, 20, NOW);
    assert_false(share_give_back(&share, &early, 2, NOW + 200 * MS, &call));
    assert_int_equal(call.forfeited, 44);
    assert_false(share_give_back(&share, &early, 3, NOW + 200 * MS, &call));
    assert_int_equal(call.forfeited, 0); /* counted once */
}

TEST("the portion that ends first is spent first")
{
    struct share share = with_portion(64, SECOND);
    struct share_call call;
    struct share_reply reply = given(2, 64, 100 * MS);

    share_spend(&share, 32, NOW);
    assert_true(share_refills(&share, NOW, MS));
    share_ask(&share, &terms, 2, 0, NOW, &call);
    assert_int_equal(call.place, 1);
    assert_int_equal(call.settled[0].id, 0); /* it is in use */
    assert_true(share_answered(&share, &terms, &reply, NOW));
    assert_int_equal(share_left(&share, NOW), 96);
    share_spend(&share, 70, NOW);
    assert_int_equal(share.portion[1].left, 0);
    assert_int_equal(share.portion[0].left, 26);
    assert_int_equal(share_left(&share, NOW + 100 * MS), 26);
}

TEST("a cost above both portions closes the smaller one")
{
    struct share share = with_portion(64, SECOND);
    struct share_call call;
    struct share_reply reply = given(2, 40, SECOND);

    share_spend(&share, 40, NOW);
    share_ask(&share, &terms, 2, 0, NOW, &call);
    assert_true(share_answered(&share, &terms, &reply, NOW));
    assert_int_equal(share_look(&share, &terms, 64, NOW), SHARE_COVERED);
    ask(&share, 3, 65, NOW, &call);
    assert_int_equal(call.place, 0);
    assert_int_equal(call.settled[0].used, 40);
    assert_int_equal(call.settled[1].id, 0);
    assert_int_equal(call.need, 25);
    assert_int_equal(share_left(&share, NOW), 40);
}

TEST("more is asked for at half or before the end")
{
    struct share share = with_portion(64, SECOND);

    assert_false(share_refills(&share, NOW, MS));
    share_spend(&share, 31, NOW);
    assert_false(share_refills(&share, NOW, MS));
    share_spend(&share, 1, NOW);
    assert_true(share_refills(&share, NOW, MS));
    share = with_portion(64, SECOND);
    assert_false(share_refills(&share, NOW + 700 * MS, MS));
    assert_true(share_refills(&share, NOW + 760 * MS, MS));
    assert_false(share_refills(&share, NOW + SECOND, MS)); /* there is none to refill */
    share.portion[0].renewable = false;
    assert_false(share_refills(&share, NOW + 760 * MS, MS));
}

TEST("a refusal is believed until it may change")
{
    struct share share;
    struct share_call call;
    struct share_reply refusal = {.id = 1, .remaining = 3, .retry_ns = 20 * MS};

    share_init(&share, NOW);
    ask(&share, 1, 9, NOW, &call);
    assert_true(share_answered(&share, &terms, &refusal, NOW));
    assert_int_equal(share_look(&share, &terms, 9, NOW), SHARE_DENIED);
    assert_int_equal(share_look(&share, &terms, 20, NOW), SHARE_DENIED);
    assert_int_equal(share_look(&share, &terms, 8, NOW), SHARE_ASK); /* perhaps */
    assert_int_equal(share.retry_at_ns, NOW + 20 * MS);
    /* The budget trickles: not before the pause. */
    assert_int_equal(share_look(&share, &terms, 9, NOW + 49 * MS), SHARE_DENIED);
    assert_int_equal(share_look(&share, &terms, 9, NOW + 50 * MS), SHARE_ASK);

    refusal.retry_ns = WEIR_NEVER;
    share_init(&share, NOW);
    ask(&share, 1, 9, NOW, &call);
    assert_true(share_answered(&share, &terms, &refusal, NOW));
    assert_int_equal(share.retry_at_ns, WEIR_NEVER);
    assert_int_equal(share_look(&share, &terms, 9, NOW + SHARE_DRY_MAX_NS), SHARE_ASK);
}

TEST("where no portion is worth giving redis decides")
{
    struct share share;
    struct share_call call;
    struct share_reply reply = {.id = 1, .remaining = 300, .too_short = true, .retry_ns = 3 * MS};

    share_init(&share, NOW);
    ask(&share, 1, 1, NOW, &call);
    assert_true(share_answered(&share, &terms, &reply, NOW));
    assert_int_equal(share_look(&share, &terms, 1, NOW), SHARE_EXACT);
    assert_int_equal(share_look(&share, &terms, 1, NOW + 3 * MS), SHARE_ASK);
    assert_int_equal(share_look(&share, &terms, 1001, NOW + 3 * MS), SHARE_EXACT);
}

TEST("what is asked for goes by demand")
{
    struct share share;
    struct share_call call;

    share_init(&share, NOW);
    share_ask(&share, &terms, 1, 1, NOW, &call);
    assert_int_equal(call.need, terms.chunk);
    assert_int_equal(call.want, terms.batch);
    (void)share_failed(&share, false);
    for (int i = 0; i < 200; i++)
        share_demand_note(&share.demand, 1);
    share_ask(&share, &terms, 2, 1, NOW + 20 * MS, &call); /* 10000 a second, half believed */
    assert_int_equal(call.want, 500);
    assert_int_equal(call.demand, 5000);
    (void)share_failed(&share, false);
    share_ask(&share, &terms, 3, 999, NOW + 21 * MS, &call);
    assert_int_equal(call.need, 999);
    assert_int_equal(call.want, 999);
    (void)share_failed(&share, false);
    share_ask(&share, &terms, 4, 1, NOW + SECOND, &call); /* nobody comes any more */
    assert_int_equal(call.want, terms.batch);
    (void)share_failed(&share, false);
    for (int i = 0; i < 100; i++)
        share_demand_note(&share.demand, UINT64_MAX);
    share_ask(&share, &terms, 5, 1, NOW + 2 * SECOND, &call);
    assert_int_equal(call.want, terms.capacity);
}

/* --- The wheel ------------------------------------------------------------------------------- */

#define TIMERS 50

TEST("timers come when they are due or a little later")
{
    static struct weir_wheel wheel;
    static struct weir_timer timers[TIMERS];
    uint64_t due[TIMERS] = {0}, now_ns = NOW, random = 99, come = 0;

    weir_wheel_init(&wheel, TICK_NS, 0);
    assert_int_equal(weir_wheel_due(&wheel), UINT64_MAX);
    for (int step = 0; step < 20000; step++) {
        struct weir_timer *timer;
        uint32_t i;

        random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
        i = (uint32_t)(random >> 33) % TIMERS;
        if (random >> 60 == 0) {
            weir_wheel_remove(&wheel, &timers[i]);
            due[i] = 0;
        } else {
            due[i] = now_ns + (random >> 20) % SECOND;
            weir_wheel_set(&wheel, &timers[i], due[i]);
        }
        now_ns += (random >> 40) % (random >> 61 == 1 ? 2 * SECOND : 3 * MS);
        while ((timer = weir_wheel_expire(&wheel, now_ns)) != NULL) {
            i = (uint32_t)(timer - timers);
            assert_in_range(due[i], 1, now_ns);
            due[i] = 0;
            come++;
        }
        for (i = 0; i < TIMERS; i++)
            assert_true(due[i] == 0 || due[i] + 10 * MS > now_ns);
        assert_true(weir_wheel_due(&wheel) > now_ns);
    }
    assert_true(come > 1000);
}

RUN_TESTS()
