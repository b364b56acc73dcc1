/* SPDX-License-Identifier: Apache-2.0 */
/* see timer_wheel.h */
#include "base/timer_wheel.h"

#include <stddef.h>
#include <string.h>

void weir_wheel_init(struct weir_wheel *wheel, uint64_t tick_size, uint64_t now)
{
    memset(wheel, 0, sizeof *wheel);
    wheel->tick_size = tick_size;
    wheel->tick = now / tick_size;
    for (size_t i = 0; i < WEIR_WHEEL_SLOTS; i++)
        wheel->slots[i].previous = wheel->slots[i].next = &wheel->slots[i];
}

/* Puts a timer where the hand finds it just after its deadline, or as far ahead of `hand` as there
 * is. */
static void wheel_put(struct weir_wheel *wheel, struct weir_timer *timer, uint64_t hand)
{
    uint64_t tick = timer->deadline / wheel->tick_size + 1;
    if (tick < hand)
        tick = hand;
    if (tick > hand + WEIR_WHEEL_SLOTS - 1)
        tick = hand + WEIR_WHEEL_SLOTS - 1;
    struct weir_timer *slot = &wheel->slots[tick % WEIR_WHEEL_SLOTS];
    timer->tick = tick;
    timer->previous = slot->previous;
    timer->next = slot;
    slot->previous->next = timer;
    slot->previous = timer;
    wheel->count++;
}

void weir_wheel_remove(struct weir_wheel *wheel, struct weir_timer *timer)
{
    if (!timer->next)
        return;
    timer->previous->next = timer->next;
    timer->next->previous = timer->previous;
    timer->previous = timer->next = NULL;
    wheel->count--;
}

void weir_wheel_set(struct weir_wheel *wheel, struct weir_timer *timer, uint64_t deadline)
{
    timer->deadline = deadline;
    if (timer->next) {
        if (deadline >= (timer->tick - 1) * wheel->tick_size)
            return;
        weir_wheel_remove(wheel, timer);
    }
    wheel_put(wheel, timer, wheel->tick);
}

struct weir_timer *weir_wheel_expire(struct weir_wheel *wheel, uint64_t now)
{
    uint64_t now_tick = now / wheel->tick_size;
    if (wheel->count == 0 && now_tick > wheel->tick)
        wheel->tick = now_tick;
    /* After a long sleep every slot is passed once, not once a tick. */
    if (now_tick > wheel->tick + WEIR_WHEEL_SLOTS)
        wheel->tick = now_tick - WEIR_WHEEL_SLOTS;
    for (; wheel->tick <= now_tick; wheel->tick++) {
        struct weir_timer *slot = &wheel->slots[wheel->tick % WEIR_WHEEL_SLOTS];
        struct weir_timer *timer = slot->next;
        while (timer != slot) {
            struct weir_timer *next = timer->next;
            if (timer->deadline <= now) {
                weir_wheel_remove(wheel, timer);
                return timer;
            }
            if (timer->tick <= wheel->tick) { /* its deadline has moved: put it again, later */
                weir_wheel_remove(wheel, timer);
                wheel_put(wheel, timer, now_tick); /* where the hand is going */
            }
            timer = next;
        }
    }
    return NULL;
}

uint64_t weir_wheel_due(const struct weir_wheel *wheel)
{
    if (wheel->count == 0)
        return UINT64_MAX;
    for (uint64_t tick = wheel->tick;; tick++) {
        const struct weir_timer *slot = &wheel->slots[tick % WEIR_WHEEL_SLOTS];
        if (slot->next != slot)
            return tick * wheel->tick_size;
    }
}
