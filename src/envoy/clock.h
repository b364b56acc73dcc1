/* SPDX-License-Identifier: Apache-2.0 */
/* The module's one thread in a process: it ends the waits of streams (`queue`, `tarpit`), and calls
 * once in a while what keeps the open states in order.
 *
 * Envoy has no timer for filters of 1.38. A wait is in a timing wheel by its end, with a precision
 * of a millisecond, never early; the thread has Envoy call the stream's `scheduled` hook. That
 * happens under the mutex that the end of a stream takes to remove its wait, so no stream is called
 * after its end, and no worker after its streams.
 *
 * Memory: 8 KiB. Threads: locked; the thread blocks all signals.
 */
#ifndef WEIR_EVY_CLOCK_H
#define WEIR_EVY_CLOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/timer_wheel.h"

/* Streams that wait at the same time, in a process. */
#define WEIR_EVY_WAITS_MAX 65536

/* Denials among them that are held back (`tarpit`), so that those who meet it leave room for those
 * who queue. */
#define WEIR_EVY_HELD_MAX 4096

/* In a stream; zero: it does not wait. */
struct weir_evy_wait {
    struct weir_timer timer; /* in the wheel */
    void *scheduler;
    bool held; /* a denial */
};

struct weir_evy_clock {
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    bool runs, stops;
    struct weir_wheel wheel; /* of waits, in nanoseconds */
    size_t held;             /* waits of denials that have not ended */
    uint64_t wakes_ns;       /* when the thread wakes by itself */
    uint64_t period_ns;      /* of `tick` */
    void (*tick)(void *context);
    void *context;
};

/* CLOCK_MONOTONIC. */
uint64_t weir_evy_now_ns(void);

/* Calls `tick` on its thread once a second. Errors: WEIR_ERR_MEMORY (no thread). */
int weir_evy_clock_start(struct weir_evy_clock *clock, void (*tick)(void *context), void *context)
    __attribute__((warn_unused_result));

/* Ends and joins the thread; no stream waits any more. */
void weir_evy_clock_stop(struct weir_evy_clock *clock);

/* From now on it ticks at least this often. */
void weir_evy_clock_hurry(struct weir_evy_clock *clock, uint64_t period_ns);

/* The hook `scheduled` of Envoy's stream is called in `delay_ns`; `held`: for a denial. False: too
 * many wait. */
bool weir_evy_wait_begin(struct weir_evy_clock *clock, struct weir_evy_wait *wait, void *envoy,
                         uint64_t delay_ns, bool held);

/* Ends it, whether it is over or not. */
void weir_evy_wait_end(struct weir_evy_clock *clock, struct weir_evy_wait *wait);

#endif
