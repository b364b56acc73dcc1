/* SPDX-License-Identifier: Apache-2.0 */
/* A timer wheel for keys: lists of timers, one for each 4 ms of the coming second.
 *
 * A timer that is due later goes into the last list and is then set again. An entry is in one
 * list at most. Memory: 2 KiB. Threads: one owner. */
#ifndef WEIR_STORE_REDIS_SHARE_WHEEL_H
#define WEIR_STORE_REDIS_SHARE_WHEEL_H

#include <stdbool.h>
#include <stdint.h>

#define SHARE_WHEEL_LISTS 256
#define SHARE_WHEEL_SHIFT 22 /* 2^22 ns = 4.2 ms */

struct share_timer {
    struct share_timer *next, *previous; /* NULL: in no list */
};

struct share_wheel {
    struct share_timer lists[SHARE_WHEEL_LISTS];
    uint64_t turn; /* the list that comes next, counted from the beginning of time */
    uint32_t count;
};

void share_wheel_init(struct share_wheel *wheel, uint64_t now_ns);

/* Sets or moves a timer: it comes at `due_ns` or up to 5 ms later. */
void share_wheel_set(struct share_wheel *wheel, struct share_timer *timer, uint64_t due_ns);
void share_wheel_stop(struct share_wheel *wheel, struct share_timer *timer);

/* Takes out a timer that is due; NULL: none. */
struct share_timer *share_wheel_next(struct share_wheel *wheel, uint64_t now_ns);

/* When the next one is due; UINT64_MAX: there is none. After share_wheel_next has said NULL. */
uint64_t share_wheel_due(const struct share_wheel *wheel);

#endif
