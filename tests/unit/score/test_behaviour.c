/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of steady gaps and of one route: their rules one by one, and random requests beside a slow
 * model that keeps whole histories. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <weir/error.h>

#include "draw.h"
#include "feature/score/behaviour.h"
#include "test.h"

#ifdef MODEL_QUICK
#define OPERATIONS 20000
#else
#define OPERATIONS 400000
#endif

#define MS UINT64_C(1000000)
#define START (UINT64_C(1700000000) * 1000 * MS)
#define WITHIN 50

static struct weir_behaviour *behaviour;
static uint8_t spread; /* of all requests; 0: WITHIN */

static void open_table(uint64_t clients)
{
    weir_behaviour_unref(behaviour);
    assert_int_equal(weir_behaviour_open(&behaviour, clients), 0);
}

static int setup(void **state)
{
    spread = 0;
    open_table(1000);
    return 0;
}

static int teardown(void **state)
{
    weir_behaviour_unref(behaviour);
    behaviour = NULL;
    return 0;
}

/* Hashes as far apart as those of a real hash. */
static uint64_t hash_of(uint64_t number)
{
    uint64_t state = number * UINT64_C(0x9e3779b97f4a7c15) + 1;
    draw_next(&state);
    return draw_next(&state) * UINT64_C(0xbf58476d1ce4e5b9);
}

static struct weir_event event_of(uint64_t client, uint64_t at_ms, uint32_t route)
{
    return (struct weir_event){.client = {hash_of(client), client},
                               .now_ns = START + at_ms * MS,
                               .within_ms = WITHIN,
                               .spread = spread,
                               .route = route,
                               .routed = true};
}

static struct weir_habit add(uint64_t client, uint64_t at_ms, uint32_t route)
{
    struct weir_event event = event_of(client, at_ms, route);
    struct weir_habit habit;
    weir_behaviour_add(behaviour, &event, &habit);
    return habit;
}

static unsigned steady_at(uint64_t at_ms)
{
    return add(1, at_ms, 0).steady;
}

TEST_WITH(setup, teardown, "the first gap begins a run and alike gaps continue it")
{
    assert_int_equal(steady_at(0), 0);
    assert_int_equal(steady_at(1000), 1);
    assert_int_equal(steady_at(2000), 2);
    assert_int_equal(steady_at(3049), 3); /* 49 ms longer */
    assert_int_equal(steady_at(4049), 4); /* 49 ms shorter */
    assert_int_equal(steady_at(5099), 1); /* 50 ms longer */
    assert_int_equal(steady_at(6149), 2);
}

TEST_WITH(setup, teardown, "a gap below within ends a run")
{
    assert_int_equal(steady_at(0), 0);
    assert_int_equal(steady_at(60), 1);
    assert_int_equal(steady_at(110), 2); /* exactly `within` */
    assert_int_equal(steady_at(159), 0); /* 1 ms below it, and alike */
    assert_int_equal(steady_at(219), 1);
}

TEST_WITH(setup, teardown, "a burst of one page is no rhythm")
{
    for (uint64_t i = 0; i < 100; i++)
        assert_int_equal(steady_at(i * 10), 0);
}

TEST_WITH(setup, teardown, "gaps of any length are alike by their spread")
{
    static const uint64_t gaps[] = {1, 5, 30, 1000, 100000};
    spread = 20;
    for (uint64_t i = 0; i < 5; i++)
        for (uint64_t at = 0; at < 20; at++)
            assert_int_equal(add(i, at * gaps[i], 0).steady, at);
    uint64_t at = 0;
    assert_int_equal(add(9, at, 0).steady, 0);
    assert_int_equal(add(9, at += 100, 0).steady, 1);
    assert_int_equal(add(9, at += 119, 0).steady, 2);
    assert_int_equal(add(9, at += 96, 0).steady, 3);
    assert_int_equal(add(9, at += 116, 0).steady, 1); /* 20 of 96 are 20.8 % */
    assert_int_equal(add(9, at, 0).steady, 0);        /* a burst */
}

TEST_WITH(setup, teardown, "requests on new connections make a run")
{
    struct weir_event event = event_of(1, 0, 7);
    struct weir_habit habit;
    static const uint8_t said[] = {
        WEIR_CONNECTION_NEW,  WEIR_CONNECTION_UNKNOWN, WEIR_CONNECTION_NEW, WEIR_CONNECTION_NEW,
        WEIR_CONNECTION_USED, WEIR_CONNECTION_UNKNOWN, WEIR_CONNECTION_NEW};
    static const uint8_t runs[] = {1, 1, 2, 3, 0, 0, 1};
    for (size_t i = 0; i < sizeof said; i++) {
        event.connection = said[i];
        weir_behaviour_add(behaviour, &event, &habit);
        assert_int_equal(habit.fresh, runs[i]);
    }
    weir_behaviour_recall(behaviour, event.client, &habit);
    assert_int_equal(habit.fresh, 1);
}

TEST_WITH(setup, teardown, "a gap of 17 minutes is no gap")
{
    assert_int_equal(steady_at(0), 0);
    assert_int_equal(steady_at(WEIR_GAP_MAX_MS - 1), 1);
    assert_int_equal(steady_at(2 * (uint64_t)(WEIR_GAP_MAX_MS - 1)), 2);
    assert_int_equal(steady_at(3 * (uint64_t)WEIR_GAP_MAX_MS - 2), 0);
}

TEST_WITH(setup, teardown, "a time that goes back is a gap of 0 and keeps the later time")
{
    assert_int_equal(steady_at(1000), 0);
    assert_int_equal(steady_at(2000), 1);
    assert_int_equal(steady_at(1500), 0);
    assert_int_equal(steady_at(3000), 1); /* 1,000 ms after 2,000 */
    assert_int_equal(steady_at(4000), 2);
}

TEST_WITH(setup, teardown, "runs stop at their most")
{
    struct weir_habit habit = {0};
    for (uint64_t i = 0; i < 300; i++)
        habit = add(1, i * 1000, 7);
    assert_int_equal(habit.steady, WEIR_RUN_MAX);
    assert_int_equal(habit.same_route, WEIR_RUN_MAX);
}

TEST_WITH(setup, teardown, "a run of routes ends with another route")
{
    assert_int_equal(add(1, 0, 7).same_route, 1);
    assert_int_equal(add(1, 1, 7).same_route, 2);
    assert_int_equal(add(1, 500, 7).same_route, 3);
    assert_int_equal(add(1, 501, 8).same_route, 1);
    assert_int_equal(add(1, 502, 7).same_route, 1);
    assert_int_equal(add(1, 503, 7).same_route, 2);
}

TEST_WITH(setup, teardown, "a request without a route ends the run")
{
    struct weir_event event = event_of(1, 2, 0);
    struct weir_habit habit;
    event.routed = false;
    (void)add(1, 0, 0);
    assert_int_equal(add(1, 1, 0).same_route, 2);
    weir_behaviour_add(behaviour, &event, &habit);
    assert_int_equal(habit.same_route, 0);
    assert_int_equal(add(1, 3, 0).same_route, 1);
}

TEST_WITH(setup, teardown, "a look keeps nothing")
{
    struct weir_event event = event_of(1, 1000, 7);
    struct weir_habit habit;
    (void)add(1, 0, 7);
    for (int i = 0; i < 3; i++) {
        weir_behaviour_look(behaviour, &event, &habit);
        assert_int_equal(habit.steady, 1);
        assert_int_equal(habit.same_route, 2);
    }
    assert_int_equal(add(1, 1000, 7).same_route, 2);
    event = event_of(2, 1000, 7);
    weir_behaviour_look(behaviour, &event, &habit);
    assert_int_equal(habit.same_route, 1);
    assert_int_equal(add(2, 1000, 7).same_route, 1);
}

TEST_WITH(setup, teardown, "a recall says what the last request left")
{
    struct weir_event event = event_of(1, 0, 7);
    struct weir_habit habit = {9, 9, 9};
    weir_behaviour_recall(behaviour, event.client, &habit);
    assert_int_equal(habit.steady + habit.same_route + habit.fresh, 0);
    (void)add(1, 0, 7);
    (void)add(1, 1000, 7);
    for (int i = 0; i < 2; i++) {
        weir_behaviour_recall(behaviour, event.client, &habit);
        assert_int_equal(habit.steady, 1);
        assert_int_equal(habit.same_route, 2);
    }
}

TEST_WITH(setup, teardown, "a full bucket gives the place of who was away for longest")
{
    open_table(1); /* one bucket */
    uint64_t room = weir_behaviour_room(behaviour);
    assert_int_equal(room, 4);
    for (uint64_t i = 0; i < room; i++)
        (void)add(i, i * 10, 7);
    assert_int_equal(add(0, 100, 7).same_route, 2); /* now 1 is the oldest */
    assert_int_equal(weir_behaviour_evicted(behaviour), 0);
    assert_int_equal(add(9, 110, 7).same_route, 1);
    assert_int_equal(weir_behaviour_evicted(behaviour), 1);
    assert_int_equal(add(0, 120, 7).same_route, 3);
    assert_int_equal(add(2, 130, 7).same_route, 2);
    assert_int_equal(add(1, 140, 7).same_route, 1); /* new again, in the place of 3 */
    assert_int_equal(add(9, 150, 7).same_route, 2);
    assert_int_equal(add(3, 160, 7).same_route, 1);
}

TEST_WITH(setup, teardown, "who was away for days is no longer steady")
{
    uint64_t days[] = {86400000, UINT64_C(2) * 86400000, UINT64_C(3) * 86400000};
    for (uint64_t i = 0; i < 3; i++) {
        for (uint64_t at = 0; at < 5; at++)
            (void)add(i, at * 1000, 7);
        assert_int_equal(add(i, 4000 + days[i], 7).steady, 0);
        assert_int_equal(add(i, 5000 + days[i], 7).steady, 1);
    }
}

TEST_WITH(setup, teardown, "a table has bounds")
{
    struct weir_behaviour *none = NULL;
    assert_int_equal(weir_behaviour_open(&none, 0), WEIR_ERR_RANGE);
    assert_int_equal(weir_behaviour_open(&none, WEIR_BEHAVIOUR_CLIENTS_MAX + 1), WEIR_ERR_RANGE);
    assert_null(none);
    open_table(6);
    assert_int_equal(weir_behaviour_room(behaviour), 8);
    weir_behaviour_unref(weir_behaviour_ref(behaviour));
    weir_behaviour_unref(weir_behaviour_ref(NULL));
    (void)add(1, 0, 7);
}

/* --- The model: whole histories --------------------------------------------------------------- */

#define HISTORY 400
#define CLIENTS 8

struct history {
    uint32_t count;
    uint64_t at_ms[HISTORY];
    int route[HISTORY]; /* -1: none */
    uint8_t connection[HISTORY];
};

/* The gap before request i. */
static uint64_t gap_at(const struct history *history, uint32_t i)
{
    return history->at_ms[i] - history->at_ms[i - 1];
}

static bool model_counts(uint64_t gap)
{
    return gap >= (spread > 0 ? 1 : WITHIN) && gap < WEIR_GAP_MAX_MS;
}

static bool model_alike(uint64_t before, uint64_t gap)
{
    uint64_t apart = gap > before ? gap - before : before - gap;
    return spread > 0 ? apart * 100 < before * spread : apart < WITHIN;
}

static unsigned model_steady(const struct history *history)
{
    unsigned run = 0;
    for (uint32_t i = history->count - 1; i >= 1; i--) {
        uint64_t gap = gap_at(history, i);
        if (!model_counts(gap))
            break;
        run++;
        if (i == 1)
            break;
        uint64_t before = gap_at(history, i - 1);
        if (!model_alike(before, gap) || !model_counts(before))
            break;
    }
    return run < WEIR_RUN_MAX ? run : WEIR_RUN_MAX;
}

static unsigned model_fresh(const struct history *history)
{
    unsigned run = 0;
    for (uint32_t i = history->count; i > 0; i--) {
        if (history->connection[i - 1] == WEIR_CONNECTION_USED)
            break;
        run += history->connection[i - 1] == WEIR_CONNECTION_NEW;
    }
    return run < WEIR_RUN_MAX ? run : WEIR_RUN_MAX;
}

static unsigned model_route(const struct history *history)
{
    unsigned run = 0;
    int route = history->route[history->count - 1];
    for (uint32_t i = history->count; i > 0 && route >= 0 && history->route[i - 1] == route; i--)
        run++;
    return run < WEIR_RUN_MAX ? run : WEIR_RUN_MAX;
}

static void remember(struct history *history, uint64_t at_ms, int route, uint8_t connection)
{
    if (history->count == HISTORY) {
        memmove(history->at_ms, history->at_ms + 1, (HISTORY - 1) * sizeof history->at_ms[0]);
        memmove(history->route, history->route + 1, (HISTORY - 1) * sizeof history->route[0]);
        memmove(history->connection, history->connection + 1, HISTORY - 1);
        history->count--;
    }
    history->connection[history->count] = connection;
    history->at_ms[history->count] = at_ms;
    history->route[history->count++] = route;
}

/* With one bucket, who was away for longest goes: ties do not occur, as time moves on. */
static void evict(struct history *histories, uint32_t room)
{
    uint32_t held = 0, oldest = 0;
    for (uint32_t i = 0; i < CLIENTS; i++) {
        const struct history *one = &histories[i], *best = &histories[oldest];
        if (one->count == 0)
            continue;
        held++;
        if (best->count == 0 || one->at_ms[one->count - 1] < best->at_ms[best->count - 1])
            oldest = i;
    }
    if (held == room)
        histories[oldest].count = 0;
}

static uint64_t roll_gap(uint64_t *drawn)
{
    static const uint64_t gaps[] = {1, 49, 50, 51, 99, 100, 1000, 1049, 1050, 60000};
    switch (draw_below(drawn, 8)) {
    case 0:
        return gaps[draw_below(drawn, 10)];
    case 1:
        return 1 + draw_below(drawn, 200);
    case 2:
        return draw_below(drawn, 500) == 0 ? WEIR_GAP_MAX_MS - 2 + draw_below(drawn, 4) : 1;
    default:
        return 1 + draw_below(drawn, 4) * 13;
    }
}

static void run_model(uint64_t clients, uint64_t seed)
{
    static struct history histories[CLIENTS];
    uint64_t drawn = seed, now_ms = 0;
    uint32_t turn = 0;
    memset(histories, 0, sizeof histories);
    open_table(clients);
    uint32_t room = (uint32_t)weir_behaviour_room(behaviour);
    for (int i = 0; i < OPERATIONS; i++) {
        bool one = draw_below(&drawn, 4) > 0; /* mostly the same client, which makes long runs */
        uint32_t client = one ? turn : (uint32_t)draw_below(&drawn, CLIENTS);
        turn = draw_below(&drawn, 300) == 0 ? (uint32_t)draw_below(&drawn, CLIENTS) : turn;
        now_ms += roll_gap(&drawn);
        int route = draw_below(&drawn, 20) == 0 ? (int)draw_below(&drawn, 4) - 1 : (int)client;
        struct weir_event event = event_of(client, now_ms, (uint32_t)route);
        struct weir_habit habit, looked;
        event.routed = route >= 0;
        event.connection =
            draw_below(&drawn, 20) == 0 ? WEIR_CONNECTION_USED : (uint8_t)draw_below(&drawn, 2);
        if (histories[client].count == 0)
            evict(histories, room);
        remember(&histories[client], now_ms, route, event.connection);
        weir_behaviour_look(behaviour, &event, &looked);
        weir_behaviour_add(behaviour, &event, &habit);
        assert_int_equal(habit.steady, model_steady(&histories[client]));
        assert_int_equal(habit.same_route, model_route(&histories[client]));
        assert_int_equal(habit.fresh, model_fresh(&histories[client]));
        assert_memory_equal(&habit, &looked, sizeof habit);
    }
}

TEST_WITH(setup, teardown, "random requests are judged as the model judges whole histories")
{
    run_model(1000, 11);
}

TEST_WITH(setup, teardown, "random requests are judged by their spread as the model judges them")
{
    spread = 15;
    run_model(1000, 13);
}

TEST_WITH(setup, teardown, "random requests in a full table are judged as the model judges them")
{
    run_model(1, 12);
    assert_true(weir_behaviour_evicted(behaviour) > 100);
}

RUN_TESTS()
