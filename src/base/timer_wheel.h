/* SPDX-License-Identifier: Apache-2.0 */
/* A timing wheel: deadlines of many objects, a few stores each.
 *
 * Source: Varghese, Lauck, "Hashed and Hierarchical Timing Wheels" (1987), scheme 6, made lazy: a
 * deadline that moves later is only written down; the timer stays in its slot and moves when the
 * hand comes by. Only a deadline that comes nearer moves a timer at once.
 *
 *   slot (a tick each): 0 | 1 | 2 | … | 255; the hand advances with time; a deadline further away
 *   than the wheel reaches waits in the last slot and is put again.
 *
 * Times are in units of the caller's choice, all of one wheel in the same. Memory: 32 bytes a
 * timer, embedded in its object; 8 KiB a wheel. Precision: one tick, late, never early. Threads:
 * one owner.
 */
#ifndef WEIR_STORE_TIMER_WHEEL_H
#define WEIR_STORE_TIMER_WHEEL_H

#include <stdint.h>

#define WEIR_WHEEL_SLOTS 256

struct weir_timer {
    struct weir_timer *previous, *next; /* NULL: not in a wheel */
    uint64_t deadline;
    uint64_t tick; /* when the hand comes to its slot */
};

struct weir_wheel {
    uint64_t tick_size; /* units a tick */
    uint64_t tick;      /* everything due before it is done */
    uint32_t count;     /* timers in it */
    struct weir_timer slots[WEIR_WHEEL_SLOTS];
};

void weir_wheel_init(struct weir_wheel *wheel, uint64_t tick_size, uint64_t now);

/* Sets a timer's deadline; adds a timer that is not in the wheel (zeroed). */
void weir_wheel_set(struct weir_wheel *wheel, struct weir_timer *timer, uint64_t deadline);

/* Takes a timer out, if it is in the wheel. */
void weir_wheel_remove(struct weir_wheel *wheel, struct weir_timer *timer);

/* Takes out one timer whose deadline has passed; NULL: no more. Call until NULL. */
struct weir_timer *weir_wheel_expire(struct weir_wheel *wheel, uint64_t now);

/* When to call weir_wheel_expire next, after it has returned NULL: no timer is late until then.
 * It may be early, for a deadline that was moved. UINT64_MAX: no timer is in the wheel. */
uint64_t weir_wheel_due(const struct weir_wheel *wheel);

#endif
