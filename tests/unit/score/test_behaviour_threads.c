/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that share one table, and one bucket: no request is lost, and no client's runs are mixed
 * with another's. Under the thread sanitizer, too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>

#include "feature/score/behaviour.h"
#include "test.h"

#ifdef MODEL_QUICK
#define ROUNDS 2000
#else
#define ROUNDS 50000
#endif

#define THREADS 3
#define SHARED_MAX 198 /* requests of the client that all threads are: below WEIR_RUN_MAX */

struct shared {
    struct weir_behaviour *behaviour;
    atomic_int bad;
};

struct thread {
    struct shared *shared;
    uint64_t number;
};

static struct weir_habit add(struct weir_behaviour *behaviour, uint64_t client, uint64_t at)
{
    /* One bucket for all: only the upper bits differ. */
    const struct weir_event event = {.client = {client << 50 | 1, client},
                                     .now_ns = at * 1000000000,
                                     .within_ms = 50,
                                     .route = (uint32_t)client,
                                     .routed = true};
    struct weir_habit habit;
    weir_behaviour_add(behaviour, &event, &habit);
    return habit;
}

static void *run(void *context)
{
    const struct thread *thread = context;
    struct shared *shared = thread->shared;
    for (uint64_t i = 1; i <= ROUNDS; i++) {
        struct weir_habit habit = add(shared->behaviour, thread->number + 1, i);
        uint64_t steady = i - 1 < WEIR_RUN_MAX ? i - 1 : WEIR_RUN_MAX;
        uint64_t route = i < WEIR_RUN_MAX ? i : WEIR_RUN_MAX;
        if (habit.steady != steady || habit.same_route != route)
            atomic_fetch_add(&shared->bad, 1);
        if (i <= SHARED_MAX / THREADS)
            (void)add(shared->behaviour, THREADS + 1, i);
    }
    return NULL;
}

TEST("threads lose no request and mix no clients")
{
    struct shared shared = {.bad = 0};
    struct thread threads[THREADS];
    pthread_t ids[THREADS];
    assert_int_equal(weir_behaviour_open(&shared.behaviour, 1), 0);
    for (uint64_t i = 0; i < THREADS; i++) {
        threads[i] = (struct thread){&shared, i};
        assert_int_equal(pthread_create(&ids[i], NULL, run, &threads[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(ids[i], NULL), 0);
    assert_int_equal(atomic_load(&shared.bad), 0);
    struct weir_habit habit = add(shared.behaviour, THREADS + 1, ROUNDS);
    assert_int_equal(habit.same_route, SHARED_MAX + 1);
    assert_int_equal(weir_behaviour_evicted(shared.behaviour), 0);
    weir_behaviour_unref(shared.behaviour);
}

RUN_TESTS()
