/* SPDX-License-Identifier: Apache-2.0 */
/* The circuit breaker of several stores: in virtual time, against random events, and over threads.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/random.h"
#include "store/redis/shared_breaker.h"
#include "test.h"

#define MS UINT64_C(1000000)
#define START (UINT64_C(5000) * 1000 * MS)
#define STORES 4
#define SLOT 77

static struct redis_shared_breaker the_breaker;
static const char stores[STORES]; /* their addresses say who is meant */

static int set_up(void **state)
{
    redis_shared_breaker_init(&the_breaker, 42);
    *state = &the_breaker;
    return 0;
}

static int tear_down(void **state)
{
    redis_shared_breaker_end(*state);
    return 0;
}

/* As many late calls of all stores in turn as it takes. Returns when the last was late. */
static uint64_t open_it(struct redis_shared_breaker *shared, uint64_t from_ns)
{
    uint64_t now_ns = from_ns;

    for (int i = 0; i < WEIR_BREAKER_FAILURES; i++) {
        now_ns = from_ns + (uint64_t)i * 10 * MS;
        assert_true(redis_shared_breaker_closed(shared));
        assert_int_equal(redis_shared_breaker_late(shared, now_ns, SLOT),
                         i == WEIR_BREAKER_FAILURES - 1);
    }
    assert_false(redis_shared_breaker_closed(shared));
    return now_ns;
}

static bool take(struct redis_shared_breaker *shared, unsigned store, uint64_t now_ns)
{
    uint16_t slot = 0;
    bool taken = redis_shared_breaker_probe(shared, &stores[store], now_ns, &slot);

    assert_int_equal(slot, taken ? SLOT : 0);
    return taken;
}

static bool end(struct redis_shared_breaker *shared, unsigned store, uint64_t now_ns, bool answered)
{
    uint64_t open_ns = 0;
    bool closed = redis_shared_breaker_probed(shared, &stores[store], now_ns, answered, &open_ns);

    assert_int_equal(closed, closed && redis_shared_breaker_closed(shared));
    return closed;
}

static uint64_t due_of(const struct redis_shared_breaker *shared, unsigned store)
{
    return redis_shared_breaker_due_ns(shared, &stores[store]);
}

TEST_WITH(set_up, tear_down, "late calls of all stores open it once")
{
    uint64_t now_ns = open_it(*state, START);

    for (int i = 0; i < 100; i++)
        assert_false(redis_shared_breaker_late(*state, now_ns + (uint64_t)i * MS, SLOT + 1));
}

TEST_WITH(set_up, tear_down, "an answer to any store begins the count anew")
{
    for (uint64_t i = 0; i < 1000; i++)
        if (i % WEIR_BREAKER_FAILURES == WEIR_BREAKER_FAILURES - 1)
            redis_shared_breaker_answered(*state, START + i * 50 * MS);
        else
            assert_false(redis_shared_breaker_late(*state, START + i * 50 * MS, SLOT));
    assert_true(redis_shared_breaker_closed(*state));
}

TEST_WITH(set_up, tear_down, "a clock that is behind does not open it")
{
    for (uint64_t i = 0; i < 100; i++)
        assert_false(redis_shared_breaker_late(*state, START - i, SLOT));
    assert_true(redis_shared_breaker_closed(*state));
    assert_true(redis_shared_breaker_late(*state, START + WEIR_BREAKER_SPAN_NS, SLOT));
}

TEST_WITH(set_up, tear_down, "one store probes and closes it for all")
{
    uint64_t opened_ns = open_it(*state, START), due_ns = due_of(*state, 0), open_ns;
    unsigned taken = 0;

    for (unsigned i = 0; i < STORES; i++) {
        assert_int_equal(due_of(*state, i), due_ns);
        assert_false(take(*state, i, due_ns - 1));
    }
    for (unsigned i = 0; i < STORES; i++)
        taken += take(*state, i, due_ns);
    assert_int_equal(taken, 1);
    assert_false(end(*state, 1, due_ns, true)); /* it was the first one that took it */
    assert_false(redis_shared_breaker_closed(*state));
    assert_true(
        redis_shared_breaker_probed(*state, &stores[0], opened_ns + 123 * MS, true, &open_ns));
    assert_int_equal(open_ns, 123 * MS);
    assert_true(redis_shared_breaker_closed(*state));
    for (unsigned i = 0; i < STORES; i++) {
        assert_int_equal(due_of(*state, i), UINT64_MAX);
        assert_false(take(*state, i, due_ns + 1000 * MS));
    }
    open_it(*state, due_ns + 2000 * MS); /* the count has begun anew */
}

TEST_WITH(set_up, tear_down, "there is one probe a pause whatever the number of stores")
{
    uint64_t from_ns = open_it(*state, START);
    unsigned probes = 0, of[STORES] = {0};

    for (uint64_t now_ns = from_ns; now_ns < from_ns + 20000 * MS; now_ns += MS)
        for (unsigned i = 0; i < STORES; i++)
            if (take(*state, i, now_ns)) {
                probes++;
                of[i]++;
                assert_false(end(*state, i, now_ns, false));
            }
    assert_in_range(probes, 20000 / 500, 20000 / 250 + 8);
    assert_true(of[0] > 10 && of[1] > 10); /* one whose probe fails lets another one go first */
}

TEST_WITH(set_up, tear_down, "a store that is alone probes again after its turn to yield")
{
    uint64_t now_ns;

    open_it(*state, START);
    now_ns = due_of(*state, 2);
    assert_true(take(*state, 2, now_ns));
    assert_false(end(*state, 2, now_ns, false));
    assert_int_equal(due_of(*state, 2), due_of(*state, 3) + REDIS_SHARED_BREAKER_YIELD_NS);
    assert_false(take(*state, 2, due_of(*state, 3)));
    assert_true(take(*state, 2, due_of(*state, 2)));
}

TEST_WITH(set_up, tear_down, "a prober that leaves gives the probe up")
{
    uint64_t now_ns;

    open_it(*state, START);
    now_ns = due_of(*state, 0);
    assert_true(take(*state, 0, now_ns));
    redis_shared_breaker_leave(*state, &stores[1]); /* another one: nothing changes */
    assert_false(take(*state, 2, now_ns));
    redis_shared_breaker_leave(*state, &stores[0]);
    assert_true(due_of(*state, 3) <= now_ns);
    assert_true(take(*state, 3, now_ns));
    assert_false(end(*state, 0, now_ns, true)); /* too late: it is not its probe any more */
    assert_false(redis_shared_breaker_closed(*state));
    assert_true(end(*state, 3, now_ns, true));
}

TEST_WITH(set_up, tear_down, "a prober that stops is replaced")
{
    uint64_t now_ns;

    open_it(*state, START);
    now_ns = due_of(*state, 0);
    assert_true(take(*state, 0, now_ns));
    assert_int_equal(due_of(*state, 1), now_ns + REDIS_SHARED_BREAKER_PROBE_NS);
    assert_false(take(*state, 1, now_ns + REDIS_SHARED_BREAKER_PROBE_NS - 1));
    assert_true(take(*state, 1, now_ns + REDIS_SHARED_BREAKER_PROBE_NS));
    assert_false(take(*state, 2, now_ns + REDIS_SHARED_BREAKER_PROBE_NS));
    assert_false(end(*state, 0, now_ns + REDIS_SHARED_BREAKER_PROBE_NS, false));
    assert_true(end(*state, 1, now_ns + REDIS_SHARED_BREAKER_PROBE_NS, true));
}

TEST_WITH(set_up, tear_down, "a connection that is back makes the probe due soon")
{
    uint64_t now_ns = open_it(*state, START);

    for (int i = 0; i < 8; i++) {
        now_ns = due_of(*state, 0) + REDIS_SHARED_BREAKER_YIELD_NS;
        assert_true(take(*state, 0, now_ns));
        assert_false(end(*state, 0, now_ns, false));
    }
    assert_true(due_of(*state, 1) > now_ns + WEIR_BREAKER_PAUSE_MIN_NS);
    redis_shared_breaker_hurry(*state, now_ns);
    assert_true(due_of(*state, 1) <= now_ns + WEIR_BREAKER_PAUSE_MIN_NS / 2);
}

/* Whatever happens: never two probers, and never stuck. */
TEST_WITH(set_up, tear_down, "random events never wedge it")
{
    uint64_t random = 7, now_ns = START, closed = 0;
    unsigned prober = STORES;

    for (int i = 0; i < 300000; i++) {
        unsigned store = weir_random(&random) % STORES;
        uint64_t event = weir_random(&random) % 8;
        bool open = !redis_shared_breaker_closed(*state);

        now_ns += weir_random(&random) % (20 * MS);
        if (event < 3) {
            redis_shared_breaker_late(*state, now_ns - weir_random(&random) % (5 * MS), SLOT);
        } else if (event == 3 && weir_random(&random) % 8 == 0) {
            redis_shared_breaker_answered(*state, now_ns);
        } else if (event == 4) {
            redis_shared_breaker_leave(*state, &stores[store]);
            prober = prober == store ? STORES : prober;
        } else if (event == 5 && prober < STORES) {
            bool answered = weir_random(&random) % 4 == 0;

            assert_int_equal(end(*state, prober, now_ns, answered), answered);
            closed += answered;
            prober = STORES;
        } else if (event > 5 && take(*state, store, now_ns)) {
            assert_int_equal(prober, STORES); /* a probe never takes as long here */
            prober = store;
        } else {
            continue;
        }
        if (open && !redis_shared_breaker_closed(*state))
            assert_true(due_of(*state, store) <=
                        now_ns + REDIS_SHARED_BREAKER_PROBE_NS + REDIS_SHARED_BREAKER_YIELD_NS);
    }
    assert_true(closed > 100);
}

/* --- Threads ---------------------------------------------------------------------------------- */

static struct {
    atomic_uint opened, closed;
} counts;

/* A server that answers every third probe. */
static void *run_store(void *of)
{
    const char *who = of;
    struct redis_shared_breaker *shared = &the_breaker;
    uint64_t now_ns = START, open_ns, random = (uint64_t)(who - stores);
    uint16_t slot;

    for (int i = 0; i < 30000; i++) {
        now_ns += 2 * MS;
        if (redis_shared_breaker_closed(shared)) {
            atomic_fetch_add(&counts.opened, redis_shared_breaker_late(shared, now_ns, SLOT));
            continue;
        }
        if (now_ns < redis_shared_breaker_due_ns(shared, who) ||
            !redis_shared_breaker_probe(shared, who, now_ns, &slot))
            continue;

        bool answered = weir_random(&random) % 3 == 0;

        if (weir_random(&random) % 5 == 0)
            redis_shared_breaker_leave(shared, who);
        else
            atomic_fetch_add(&counts.closed,
                             redis_shared_breaker_probed(shared, who, now_ns, answered, &open_ns));
        redis_shared_breaker_answered(shared, now_ns);
    }
    return NULL;
}

TEST_WITH(set_up, tear_down, "threads open and close it in turn")
{
    pthread_t threads[STORES];

    for (unsigned i = 0; i < STORES; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_store, (void *)&stores[i]), 0);
    for (unsigned i = 0; i < STORES; i++)
        pthread_join(threads[i], NULL);
    assert_true(counts.opened > 0);
    assert_int_equal(counts.opened - counts.closed, !redis_shared_breaker_closed(*state));
}

RUN_TESTS()
