/* SPDX-License-Identifier: Apache-2.0 */
/* see wheel.h */
#include "store/redis/share/wheel.h"

#include <stddef.h>

static struct lease_timer *list_of(const struct lease_wheel *wheel, uint64_t turn)
{
    return (struct lease_timer *)&wheel->lists[turn % LEASE_WHEEL_LISTS];
}

void lease_wheel_init(struct lease_wheel *wheel, uint64_t now_ns)
{
    for (uint32_t i = 0; i < LEASE_WHEEL_LISTS; i++)
        wheel->lists[i].next = wheel->lists[i].previous = &wheel->lists[i];
    wheel->turn = now_ns >> LEASE_WHEEL_SHIFT;
    wheel->count = 0;
}

void lease_wheel_stop(struct lease_wheel *wheel, struct lease_timer *timer)
{
    if (timer->next == NULL)
        return;
    timer->next->previous = timer->previous;
    timer->previous->next = timer->next;
    timer->next = timer->previous = NULL;
    wheel->count--;
}

void lease_wheel_set(struct lease_wheel *wheel, struct lease_timer *timer, uint64_t due_ns)
{
    uint64_t turn = (due_ns >> LEASE_WHEEL_SHIFT) + 1; /* not before it is due */

    lease_wheel_stop(wheel, timer);
    if (wheel->count == 0 && turn >= wheel->turn + LEASE_WHEEL_LISTS)
        wheel->turn = turn - LEASE_WHEEL_LISTS + 1; /* it stood still while it was empty */
    if (turn < wheel->turn)
        turn = wheel->turn;
    if (turn - wheel->turn >= LEASE_WHEEL_LISTS)
        turn = wheel->turn + LEASE_WHEEL_LISTS - 1;

    struct lease_timer *list = list_of(wheel, turn);

    timer->next = list;
    timer->previous = list->previous;
    list->previous->next = timer;
    list->previous = timer;
    wheel->count++;
}

struct lease_timer *lease_wheel_next(struct lease_wheel *wheel, uint64_t now_ns)
{
    uint64_t now = now_ns >> LEASE_WHEEL_SHIFT;

    if (wheel->count == 0) {
        wheel->turn = now > wheel->turn ? now : wheel->turn;
        return NULL;
    }
    /* After a long pause one round is enough: it meets every list. */
    if (now > wheel->turn + LEASE_WHEEL_LISTS)
        wheel->turn = now - LEASE_WHEEL_LISTS;
    for (; wheel->turn <= now; wheel->turn++) {
        struct lease_timer *timer = list_of(wheel, wheel->turn)->next;

        if (timer != list_of(wheel, wheel->turn)) {
            lease_wheel_stop(wheel, timer);
            return timer;
        }
    }
    return NULL;
}

uint64_t lease_wheel_due(const struct lease_wheel *wheel)
{
    if (wheel->count == 0)
        return UINT64_MAX;
    for (uint64_t turn = wheel->turn;; turn++)
        if (list_of(wheel, turn)->next != list_of(wheel, turn))
            return turn << LEASE_WHEEL_SHIFT;
}
