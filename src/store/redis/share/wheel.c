/* SPDX-License-Identifier: Apache-2.0 */
/* see wheel.h */
#include "store/redis/share/wheel.h"

#include <stddef.h>

static struct share_timer *list_of(const struct share_wheel *wheel, uint64_t turn)
{
    return (struct share_timer *)&wheel->lists[turn % SHARE_WHEEL_LISTS];
}

void share_wheel_init(struct share_wheel *wheel, uint64_t now_ns)
{
    for (uint32_t i = 0; i < SHARE_WHEEL_LISTS; i++)
        wheel->lists[i].next = wheel->lists[i].previous = &wheel->lists[i];
    wheel->turn = now_ns >> SHARE_WHEEL_SHIFT;
    wheel->count = 0;
}

void share_wheel_stop(struct share_wheel *wheel, struct share_timer *timer)
{
    if (timer->next == NULL)
        return;
    timer->next->previous = timer->previous;
    timer->previous->next = timer->next;
    timer->next = timer->previous = NULL;
    wheel->count--;
}

void share_wheel_set(struct share_wheel *wheel, struct share_timer *timer, uint64_t due_ns)
{
    uint64_t turn = (due_ns >> SHARE_WHEEL_SHIFT) + 1; /* not before it is due */

    share_wheel_stop(wheel, timer);
    if (wheel->count == 0 && turn >= wheel->turn + SHARE_WHEEL_LISTS)
        wheel->turn = turn - SHARE_WHEEL_LISTS + 1; /* it did not turn while it was empty */
    if (turn < wheel->turn)
        turn = wheel->turn;
    if (turn - wheel->turn >= SHARE_WHEEL_LISTS)
        turn = wheel->turn + SHARE_WHEEL_LISTS - 1;

    struct share_timer *list = list_of(wheel, turn);

    timer->next = list;
    timer->previous = list->previous;
    list->previous->next = timer;
    list->previous = timer;
    wheel->count++;
}

struct share_timer *share_wheel_next(struct share_wheel *wheel, uint64_t now_ns)
{
    uint64_t now = now_ns >> SHARE_WHEEL_SHIFT;

    if (wheel->count == 0) {
        wheel->turn = now > wheel->turn ? now : wheel->turn;
        return NULL;
    }
    /* After a long pause one round is enough: it meets every list. */
    if (now > wheel->turn + SHARE_WHEEL_LISTS)
        wheel->turn = now - SHARE_WHEEL_LISTS;
    for (; wheel->turn <= now; wheel->turn++) {
        struct share_timer *timer = list_of(wheel, wheel->turn)->next;

        if (timer != list_of(wheel, wheel->turn)) {
            share_wheel_stop(wheel, timer);
            return timer;
        }
    }
    return NULL;
}

uint64_t share_wheel_due(const struct share_wheel *wheel)
{
    if (wheel->count == 0)
        return UINT64_MAX;
    for (uint64_t turn = wheel->turn;; turn++)
        if (list_of(wheel, turn)->next != list_of(wheel, turn))
            return turn << SHARE_WHEEL_SHIFT;
}
