/* SPDX-License-Identifier: Apache-2.0 */
/* When keys are to be looked at again: lists of them, one for each 4 ms of the coming second.
 *
 * What is due later than that is put into the last list and then put in again. An entry is in one
 * list at most. Memory: 2 KiB. Threads: one owner. */
#ifndef WEIR_STORE_REDIS_SHARE_WHEEL_H
#define WEIR_STORE_REDIS_SHARE_WHEEL_H

#include <stdbool.h>
#include <stdint.h>

#define LEASE_WHEEL_LISTS 256
#define LEASE_WHEEL_SHIFT 22 /* 2^22 ns = 4.2 ms */

struct lease_timer {
    struct lease_timer *next, *previous; /* NULL: in no list */
};

struct lease_wheel {
    struct lease_timer lists[LEASE_WHEEL_LISTS];
    uint64_t turn; /* the list that comes next, counted from the beginning of time */
    uint32_t count;
};

void lease_wheel_init(struct lease_wheel *wheel, uint64_t now_ns);

/* Puts a timer in, or elsewhere: it comes at `due_ns` or up to 5 ms later. */
void lease_wheel_set(struct lease_wheel *wheel, struct lease_timer *timer, uint64_t due_ns);
void lease_wheel_stop(struct lease_wheel *wheel, struct lease_timer *timer);

/* Takes out a timer that is due; NULL: none. */
struct lease_timer *lease_wheel_next(struct lease_wheel *wheel, uint64_t now_ns);

/* When the next one is due; UINT64_MAX: there is none. After lease_wheel_next has said NULL. */
uint64_t lease_wheel_due(const struct lease_wheel *wheel);

#endif
