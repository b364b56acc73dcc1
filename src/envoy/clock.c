/* SPDX-License-Identifier: Apache-2.0 */
/* see clock.h */
#include "envoy/clock.h"

#include <signal.h>
#include <string.h>
#include <time.h>

#include <weir/error.h>

#include "envoy/abi.h"

#define SECOND_NS UINT64_C(1000000000)
#define PERIOD_MIN_NS (SECOND_NS / 100)
#define PRECISION_NS (SECOND_NS / 1000) /* of waits */

uint64_t weir_evy_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

/* --- The thread ------------------------------------------------------------------------------- */

/* Those that are over. */
static void end_waits(struct weir_evy_clock *clock, uint64_t now_ns)
{
    struct weir_timer *timer;
    while ((timer = weir_wheel_expire(&clock->wheel, now_ns))) {
        struct weir_evy_wait *wait = (struct weir_evy_wait *)(void *)timer; /* its first member */
        ENVOY(http_filter_scheduler_commit)(wait->scheduler, 0);
    }
}

static void sleep_until(struct weir_evy_clock *clock, uint64_t ns)
{
    struct timespec until = {.tv_sec = (time_t)(ns / SECOND_NS), .tv_nsec = (long)(ns % SECOND_NS)};
    pthread_cond_timedwait(&clock->wake, &clock->mutex, &until);
}

static void *run(void *data)
{
    struct weir_evy_clock *clock = data;
    uint64_t ticked_ns = weir_evy_now_ns();
    pthread_mutex_lock(&clock->mutex);
    while (!clock->stops) {
        uint64_t now_ns = weir_evy_now_ns(), next_ns = ticked_ns + clock->period_ns;
        end_waits(clock, now_ns);
        if (now_ns >= next_ns) {
            pthread_mutex_unlock(&clock->mutex);
            clock->tick(clock->context);
            pthread_mutex_lock(&clock->mutex);
            ticked_ns = now_ns;
            continue;
        }
        uint64_t due_ns = weir_wheel_due(&clock->wheel);
        clock->wakes_ns = due_ns < next_ns ? due_ns : next_ns;
        sleep_until(clock, clock->wakes_ns);
    }
    pthread_mutex_unlock(&clock->mutex);
    return NULL;
}

static int start_thread(struct weir_evy_clock *clock)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&clock->thread, NULL, run, clock);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed ? WEIR_ERR_MEMORY : 0;
}

int weir_evy_clock_start(struct weir_evy_clock *clock, void (*tick)(void *context), void *context)
{
    pthread_condattr_t monotonic;
    memset(clock, 0, sizeof *clock);
    weir_wheel_init(&clock->wheel, PRECISION_NS, weir_evy_now_ns());
    clock->tick = tick;
    clock->context = context;
    clock->period_ns = SECOND_NS;
    pthread_mutex_init(&clock->mutex, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&clock->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    clock->runs = start_thread(clock) == 0;
    if (clock->runs)
        return 0;
    weir_evy_clock_stop(clock);
    return WEIR_ERR_MEMORY;
}

void weir_evy_clock_stop(struct weir_evy_clock *clock)
{
    if (clock->runs) {
        pthread_mutex_lock(&clock->mutex);
        clock->stops = true;
        pthread_cond_signal(&clock->wake);
        pthread_mutex_unlock(&clock->mutex);
        pthread_join(clock->thread, NULL);
    }
    pthread_cond_destroy(&clock->wake);
    pthread_mutex_destroy(&clock->mutex);
    memset(clock, 0, sizeof *clock);
}

void weir_evy_clock_hurry(struct weir_evy_clock *clock, uint64_t period_ns)
{
    pthread_mutex_lock(&clock->mutex);
    if (period_ns < PERIOD_MIN_NS)
        period_ns = PERIOD_MIN_NS;
    if (period_ns < clock->period_ns) {
        clock->period_ns = period_ns;
        pthread_cond_signal(&clock->wake);
    }
    pthread_mutex_unlock(&clock->mutex);
}

/* --- Waits ------------------------------------------------------------------------------------ */

/* Counts a denial; false: enough are held back. */
static bool has_room(struct weir_evy_clock *clock, struct weir_evy_wait *wait, bool held)
{
    if (clock->wheel.count >= WEIR_EVY_WAITS_MAX || !wait->scheduler ||
        (held && clock->held >= WEIR_EVY_HELD_MAX))
        return false;
    wait->held = held;
    clock->held += held;
    return true;
}

bool weir_evy_wait_begin(struct weir_evy_clock *clock, struct weir_evy_wait *wait, void *envoy,
                         uint64_t delay_ns, bool held)
{
    uint64_t now_ns = weir_evy_now_ns();
    uint64_t due_ns = delay_ns < UINT64_MAX - now_ns ? now_ns + delay_ns : UINT64_MAX;
    wait->scheduler = ENVOY(http_filter_scheduler_new)(envoy);
    pthread_mutex_lock(&clock->mutex);
    bool room = has_room(clock, wait, held);
    if (room)
        weir_wheel_set(&clock->wheel, &wait->timer, due_ns);
    if (room && due_ns < clock->wakes_ns)
        pthread_cond_signal(&clock->wake);
    pthread_mutex_unlock(&clock->mutex);
    if (!room)
        weir_evy_wait_end(clock, wait);
    return room;
}

void weir_evy_wait_end(struct weir_evy_clock *clock, struct weir_evy_wait *wait)
{
    if (!wait->scheduler)
        return;
    pthread_mutex_lock(&clock->mutex);
    weir_wheel_remove(&clock->wheel, &wait->timer);
    clock->held -= wait->held;
    pthread_mutex_unlock(&clock->mutex);
    ENVOY(http_filter_scheduler_delete)(wait->scheduler);
    *wait = (struct weir_evy_wait){0};
}
