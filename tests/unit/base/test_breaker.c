/* SPDX-License-Identifier: Apache-2.0 */
/* The circuit breaker, by its states, and against random events. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/breaker.h"
#include "base/random.h"
#include "test.h"

#define MS UINT64_C(1000000)
#define START (UINT64_C(5000) * 1000 * MS)

/* As many failures as it takes, evenly over `span_ns`. Returns whether they opened it. */
static bool fail_in_a_row(struct weir_breaker *breaker, uint64_t from_ns, uint64_t span_ns)
{
    bool opened = false;

    for (uint64_t i = 0; i < WEIR_BREAKER_FAILURES; i++)
        opened =
            weir_breaker_call(breaker, from_ns + span_ns * i / (WEIR_BREAKER_FAILURES - 1), false);
    return opened;
}

TEST("failures in a row open it")
{
    struct weir_breaker breaker;

    weir_breaker_init(&breaker, 1);
    assert_true(weir_breaker_closed(&breaker));
    for (int i = 0; i < WEIR_BREAKER_FAILURES - 1; i++)
        assert_false(weir_breaker_call(&breaker, START + (uint64_t)i * 100 * MS, false));
    assert_true(weir_breaker_closed(&breaker));
    assert_true(weir_breaker_call(&breaker, START + 2000 * MS, false));
    assert_int_equal(breaker.state, WEIR_BREAKER_OPEN);
    assert_int_equal(breaker.opened_ns, START + 2000 * MS);
    assert_false(weir_breaker_call(&breaker, START + 2001 * MS, false));
}

TEST("one answer among them keeps it closed")
{
    struct weir_breaker breaker;

    weir_breaker_init(&breaker, 1);
    for (uint64_t i = 0; i < 1000; i++)
        assert_false(weir_breaker_call(&breaker, START + i * 50 * MS,
                                       i % WEIR_BREAKER_FAILURES == WEIR_BREAKER_FAILURES - 1));
    assert_true(weir_breaker_closed(&breaker));
}

TEST("a hiccup that is shorter than the span does not open it")
{
    struct weir_breaker breaker;

    weir_breaker_init(&breaker, 1);
    for (int i = 0; i < 10000; i++)
        assert_false(weir_breaker_call(&breaker, START, false));
    assert_false(weir_breaker_call(&breaker, START + WEIR_BREAKER_SPAN_NS - 1, false));
    assert_true(weir_breaker_call(&breaker, START + WEIR_BREAKER_SPAN_NS, false));
}

TEST("only one probe goes out after a pause")
{
    struct weir_breaker breaker;

    weir_breaker_init(&breaker, 7);
    assert_int_equal(weir_breaker_due_ns(&breaker), UINT64_MAX);
    assert_false(weir_breaker_probe(&breaker, START));
    assert_true(fail_in_a_row(&breaker, START, WEIR_BREAKER_SPAN_NS));

    uint64_t due_ns = weir_breaker_due_ns(&breaker);

    assert_in_range(due_ns - breaker.opened_ns, WEIR_BREAKER_PAUSE_MIN_NS / 2,
                    WEIR_BREAKER_PAUSE_MIN_NS);
    assert_false(weir_breaker_probe(&breaker, due_ns - 1));
    assert_true(weir_breaker_probe(&breaker, due_ns));
    assert_int_equal(breaker.state, WEIR_BREAKER_HALF_OPEN);
    assert_false(weir_breaker_closed(&breaker));
    assert_false(weir_breaker_probe(&breaker, due_ns + 1));
    assert_int_equal(weir_breaker_due_ns(&breaker), UINT64_MAX);
}

TEST("an answered probe closes it")
{
    struct weir_breaker breaker;

    weir_breaker_init(&breaker, 3);
    assert_true(fail_in_a_row(&breaker, START, WEIR_BREAKER_SPAN_NS));
    weir_breaker_probed(&breaker, START, true); /* of an earlier time: there is no probe now */
    assert_int_equal(breaker.state, WEIR_BREAKER_OPEN);
    assert_true(weir_breaker_probe(&breaker, weir_breaker_due_ns(&breaker)));
    weir_breaker_probed(&breaker, START + 200 * MS, true);
    assert_true(weir_breaker_closed(&breaker));
    /* and the count begins anew */
    assert_true(fail_in_a_row(&breaker, START + 400 * MS, WEIR_BREAKER_SPAN_NS));
}

TEST("pauses grow and stay below half a second")
{
    struct weir_breaker breaker;
    uint64_t now_ns = START, most_ns = 50 * MS;

    weir_breaker_init(&breaker, 11);
    assert_true(weir_breaker_trip(&breaker, now_ns));
    assert_false(weir_breaker_trip(&breaker, now_ns));
    for (int i = 0; i < 20; i++) {
        uint64_t due_ns = weir_breaker_due_ns(&breaker);

        assert_in_range(due_ns - now_ns, most_ns / 2, most_ns);
        assert_true(weir_breaker_probe(&breaker, due_ns));
        now_ns = due_ns + 20 * MS;
        weir_breaker_probed(&breaker, now_ns, false);
        most_ns = most_ns * 2 < WEIR_BREAKER_PAUSE_MAX_NS ? most_ns * 2 : WEIR_BREAKER_PAUSE_MAX_NS;
    }
    assert_true(weir_breaker_probe(&breaker, weir_breaker_due_ns(&breaker)));
    weir_breaker_probed(&breaker, now_ns, true);
    assert_true(weir_breaker_trip(&breaker, now_ns));
    assert_in_range(weir_breaker_due_ns(&breaker) - now_ns, WEIR_BREAKER_PAUSE_MIN_NS / 2,
                    WEIR_BREAKER_PAUSE_MIN_NS);
}

TEST("a server that is back is asked soon")
{
    struct weir_breaker breaker;
    uint64_t now_ns = START;

    weir_breaker_init(&breaker, 5);
    assert_true(weir_breaker_trip(&breaker, now_ns));
    for (int i = 0; i < 8; i++) {
        now_ns = weir_breaker_due_ns(&breaker);
        assert_true(weir_breaker_probe(&breaker, now_ns));
        weir_breaker_hurry(&breaker, now_ns); /* a probe is in flight: nothing to hurry */
        assert_int_equal(breaker.state, WEIR_BREAKER_HALF_OPEN);
        weir_breaker_probed(&breaker, now_ns, false);
    }
    assert_true(weir_breaker_due_ns(&breaker) >= now_ns + WEIR_BREAKER_PAUSE_MAX_NS / 2);
    weir_breaker_hurry(&breaker, now_ns);
    assert_in_range(weir_breaker_due_ns(&breaker) - now_ns, 0, WEIR_BREAKER_PAUSE_MIN_NS / 2);
}

TEST("nodes do not probe together")
{
    uint64_t first = 0, least = UINT64_MAX;

    for (uint64_t node = 0; node < 100; node++) {
        struct weir_breaker breaker;

        weir_breaker_init(&breaker, node);
        weir_breaker_trip(&breaker, START);
        if (weir_breaker_due_ns(&breaker) > first)
            first = weir_breaker_due_ns(&breaker);
        if (weir_breaker_due_ns(&breaker) < least)
            least = weir_breaker_due_ns(&breaker);
    }
    assert_true(first - least > 20 * MS);
}

/* Whatever happens: never two probes at once, none too late, and never stuck. */
TEST("random events never wedge it")
{
    struct weir_breaker breaker;
    uint64_t random = 42, now_ns = START, open_since_ns = 0;
    bool probing = false;

    weir_breaker_init(&breaker, 42);
    for (int i = 0; i < 200000; i++) {
        uint64_t event = weir_random(&random) % 8;

        now_ns += weir_random(&random) % (20 * MS);
        if (event < 3) {
            weir_breaker_call(&breaker, now_ns, event == 0);
        } else if (event == 3) {
            weir_breaker_trip(&breaker, now_ns);
        } else if (event == 4) {
            weir_breaker_hurry(&breaker, now_ns);
        } else if (probing && event == 5) {
            weir_breaker_probed(&breaker, now_ns, weir_random(&random) % 4 == 0);
            probing = false;
        } else if (weir_breaker_probe(&breaker, now_ns)) {
            assert_false(probing);
            probing = true;
        }
        if (breaker.state != WEIR_BREAKER_OPEN)
            open_since_ns = now_ns;
        else
            assert_true(weir_breaker_due_ns(&breaker) <=
                        open_since_ns + WEIR_BREAKER_PAUSE_MAX_NS + 20 * MS);
        assert_int_equal(probing, breaker.state == WEIR_BREAKER_HALF_OPEN);
    }
}

RUN_TESTS()
