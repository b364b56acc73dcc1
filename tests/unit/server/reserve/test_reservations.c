/* SPDX-License-Identifier: Apache-2.0 */
/* The list of open reservations: what is due is listed until it is removed, in the order of time
 * and within its room; beside a slow model. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "draw.h"
#include "feature/reserve/server/reservations.h"
#include "test.h"

#define SECOND UINT64_C(1000000000)
#define START (UINT64_C(1700000000) * SECOND)
#define ROOM 64
#define STEPS 200000

static struct weir_reservations *list;

static int open_list(void **state)
{
    (void)state;
    return weir_reservations_open(&list, ROOM);
}

static int close_list(void **state)
{
    (void)state;
    weir_reservations_close(list);
    return 0;
}

static void add_of(uint64_t caller, uint64_t id, uint64_t ends_at_ns)
{
    char token[32];
    size_t size = (size_t)snprintf(token, sizeof token, "token %llu", (unsigned long long)id);
    uint32_t place;
    assert_int_equal(weir_reservations_claim(list, caller, &place), WEIR_RESERVATIONS_CLAIMED);
    weir_reservations_add(list, place, caller, id, ends_at_ns, (struct weir_bytes){token, size});
}

static void add(uint64_t id, uint64_t ends_at_ns)
{
    add_of(id, id, ends_at_ns);
}

/* A place for another caller than any before. */
static enum weir_reservations_claim claim(uint32_t *place)
{
    static uint64_t caller = UINT64_C(1) << 40;
    return weir_reservations_claim(list, caller++, place);
}

/* The id of one that is due, whose token is shown; 0: none. */
static uint64_t due(uint64_t now_ns)
{
    char token[WEIR_RESERVATION_TEXT_MAX], expected[32];
    uint64_t id = 0;
    size_t size = weir_reservations_due(list, now_ns, &id, token);
    if (size == 0)
        return 0;
    assert_int_equal(snprintf(expected, sizeof expected, "token %llu", (unsigned long long)id),
                     size);
    assert_memory_equal(token, expected, size);
    return id;
}

TEST_WITH(open_list, close_list, "what is due is reported again until it is removed")
{
    uint64_t now_ns = START + SECOND;
    add(7, now_ns);
    assert_int_equal(due(now_ns - 1), 0);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(due(now_ns), 7);
        assert_int_equal(due(now_ns + WEIR_RESERVATION_AGAIN_NS - 1), 0);
        assert_int_equal(weir_reservations_count(list), 1);
        now_ns += WEIR_RESERVATION_AGAIN_NS;
    }
    weir_reservations_remove(list, 7);
    assert_int_equal(due(now_ns), 0);
    assert_int_equal(weir_reservations_count(list), 0);
}

TEST_WITH(open_list, close_list, "an hour after its end it is reported for the last time")
{
    add(7, START);
    assert_int_equal(due(START + WEIR_RESERVATION_LIFE_MAX_NS - 1), 7);
    assert_int_equal(weir_reservations_count(list), 1);
    assert_int_equal(due(START + WEIR_RESERVATION_LIFE_MAX_NS + WEIR_RESERVATION_AGAIN_NS), 7);
    assert_int_equal(weir_reservations_count(list), 0);
}

/* So that a store that is away for long keeps no new ones out. */
TEST_WITH(open_list, close_list, "while more than half of the room is used each is reported once")
{
    for (uint64_t id = 1; id <= ROOM; id++)
        add(id, START);
    uint32_t place;
    assert_int_equal(claim(&place), WEIR_RESERVATIONS_FULL);
    for (int i = 0; i < ROOM; i++)
        assert_int_not_equal(due(START), 0);
    assert_int_equal(due(START), 0);
    assert_int_equal(weir_reservations_count(list), ROOM / 2);
}

TEST_WITH(open_list, close_list, "claimed room that is not used is given back")
{
    uint32_t places[ROOM], none;
    for (int i = 0; i < ROOM; i++)
        assert_int_equal(claim(&places[i]), WEIR_RESERVATIONS_CLAIMED);
    assert_int_equal(claim(&none), WEIR_RESERVATIONS_FULL);
    assert_int_equal(weir_reservations_refused(list, WEIR_RESERVATIONS_FULL), 1);
    weir_reservations_unclaim(list, places[7]);
    assert_int_equal(claim(&places[7]), WEIR_RESERVATIONS_CLAIMED);
    for (int i = 0; i < ROOM; i++)
        weir_reservations_unclaim(list, places[i]);
    assert_int_equal(weir_reservations_count(list), 0);
}

TEST_WITH(open_list, close_list, "a caller holds as many places as are free at most")
{
    uint32_t places[ROOM], place;
    int held = 0;
    while (weir_reservations_claim(list, 1, &places[held]) == WEIR_RESERVATIONS_CLAIMED)
        held++;
    assert_int_equal(held, ROOM / 2);
    assert_int_equal(weir_reservations_refused(list, WEIR_RESERVATIONS_SHARE), 1);
    int others = 0;
    while (weir_reservations_claim(list, 2, &place) == WEIR_RESERVATIONS_CLAIMED)
        others++;
    assert_int_equal(others, ROOM / 4); /* the last finds as many free as it holds */
    assert_int_equal(weir_reservations_claim(list, 3, &place), WEIR_RESERVATIONS_CLAIMED);
    weir_reservations_unclaim(list, places[--held]);
    assert_int_equal(weir_reservations_claim(list, 1, &place), WEIR_RESERVATIONS_SHARE);
    while (held > ROOM / 8)
        weir_reservations_unclaim(list, places[--held]);
    assert_int_equal(weir_reservations_claim(list, 1, &place), WEIR_RESERVATIONS_CLAIMED);
    assert_int_equal(weir_reservations_refused(list, WEIR_RESERVATIONS_FULL), 0);
}

TEST_WITH(open_list, close_list, "whose a place is may turn out later")
{
    uint32_t place;
    for (uint64_t id = 1; id <= ROOM / 2; id++) {
        assert_int_equal(weir_reservations_claim(list, 1, &place), WEIR_RESERVATIONS_CLAIMED);
        weir_reservations_add(list, place, 2, id, START, (struct weir_bytes){"token", 5});
    }
    assert_int_equal(weir_reservations_claim(list, 2, &place), WEIR_RESERVATIONS_SHARE);
    assert_int_equal(weir_reservations_claim(list, 1, &place), WEIR_RESERVATIONS_CLAIMED);
}

TEST_WITH(open_list, close_list, "random orders are those of a slow model")
{
    static struct {
        uint64_t id, ends_at_ns, given_up_ns, caller;
    } model[ROOM];
    uint64_t random = 88172645463325252, now_ns = START, result = 0, again = 0, gone = 0,
             refused = 0;
    uint32_t count = 0;
    for (uint64_t step = 1; step <= STEPS; step++) {
        (void)draw_next(&random);
        now_ns += random % 7 == 0 ? random % (3 * SECOND) : 0;
        now_ns += random % 5003 == 0 ? 2 * WEIR_RESERVATION_LIFE_MAX_NS : 0;
        if (random % 3 == 0 && count < ROOM) {
            uint64_t ends_at_ns = now_ns + (random >> 20) % (20 * SECOND);
            uint64_t caller = (random >> 50) % 8 == 0;
            uint32_t held = 0, place;
            for (uint32_t n = 0; n < count; n++)
                held += model[n].caller == caller;
            if (held >= ROOM - count) {
                assert_int_equal(weir_reservations_claim(list, caller, &place),
                                 WEIR_RESERVATIONS_SHARE);
                refused++;
                continue;
            }
            add_of(caller, step, ends_at_ns);
            model[count].caller = caller;
            model[count].id = step;
            model[count].given_up_ns = ends_at_ns + WEIR_RESERVATION_LIFE_MAX_NS;
            model[count++].ends_at_ns = ends_at_ns;
        } else if (random % 4 == 1 && count > 0) {
            uint32_t n = (uint32_t)(random >> 20) % count;
            weir_reservations_remove(list, model[n].id);
            model[n] = model[--count];
            gone++;
        } else {
            uint64_t id = due(now_ns);
            uint32_t ready = 0, found = count;
            for (uint32_t n = 0; n < count; n++) {
                ready += model[n].ends_at_ns <= now_ns;
                found = model[n].id == id ? n : found;
            }
            assert_int_equal(id != 0, ready > 0);
            if (id == 0)
                continue;
            assert_true(found < count && model[found].ends_at_ns <= now_ns);
            result++;
            if (now_ns >= model[found].given_up_ns || count > ROOM / 2) {
                model[found] = model[--count];
            } else {
                model[found].ends_at_ns = now_ns + WEIR_RESERVATION_AGAIN_NS;
                again++;
            }
        }
        assert_int_equal(weir_reservations_count(list), count);
    }
    assert_true(result > 1000 && again > 1000 && gone > 1000 && refused > 1000);
}

/* --- On several threads ----------------------------------------------------------------------- */

enum { THREADS = 4, TURNS = 5000 };

static void *reserve_often(void *context)
{
    uint64_t caller = (uint64_t)(uintptr_t)context, id = caller << 32;
    uint32_t place;
    for (int i = 0; i < TURNS; i++) {
        if (weir_reservations_claim(list, caller, &place) == WEIR_RESERVATIONS_CLAIMED) {
            id++;
            if (i % 3 == 0)
                weir_reservations_unclaim(list, place);
            else
                weir_reservations_add(list, place, caller, id, START + id % 20 * SECOND,
                                      (struct weir_bytes){"token", 5});
        }
        if (i % 5 == 0) {
            char token[WEIR_RESERVATION_TEXT_MAX];
            uint64_t due_id;
            if (weir_reservations_due(list, START + 10 * SECOND, &due_id, token) > 0)
                weir_reservations_remove(list, due_id);
        } else if (i % 2 == 0) {
            weir_reservations_remove(list, id - (uint64_t)i % 8);
        }
    }
    return NULL;
}

TEST_WITH(open_list, close_list, "nothing is lost on several threads")
{
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, reserve_often, (void *)(i + 1)), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (uint64_t caller = 1; caller <= THREADS; caller++)
        for (uint64_t i = 0; i <= TURNS; i++)
            weir_reservations_remove(list, (caller << 32) + i);
    assert_int_equal(weir_reservations_count(list), 0);
    uint32_t held = 0, place;
    while (weir_reservations_claim(list, 1, &place) == WEIR_RESERVATIONS_CLAIMED)
        held++;
    assert_int_equal(held, ROOM / 2); /* nothing is held in anybody's name either */
}

RUN_TESTS()
