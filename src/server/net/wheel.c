/* SPDX-License-Identifier: Apache-2.0 */
/* see wheel.h */
#include "server/net/wheel.h"

#include <stddef.h>
#include <string.h>

void weir_wheel_init(struct weir_wheel *wheel, uint64_t now_ms)
{
    memset(wheel, 0, sizeof *wheel);
    wheel->tick = now_ms / WEIR_WHEEL_TICK_MS;
    for (size_t i = 0; i < WEIR_WHEEL_SLOTS; i++)
        wheel->slots[i].previous = wheel->slots[i].next = &wheel->slots[i];
}

/* Puts a node where the hand finds it just after its deadline, or as far ahead as there is. */
static void wheel_put(struct weir_wheel *wheel, struct weir_wheel_node *node)
{
    uint64_t tick = node->deadline_ms / WEIR_WHEEL_TICK_MS + 1;
    if (tick < wheel->tick)
        tick = wheel->tick;
    if (tick > wheel->tick + WEIR_WHEEL_SLOTS - 1)
        tick = wheel->tick + WEIR_WHEEL_SLOTS - 1;
    struct weir_wheel_node *slot = &wheel->slots[tick % WEIR_WHEEL_SLOTS];
    node->tick = tick;
    node->previous = slot->previous;
    node->next = slot;
    slot->previous->next = node;
    slot->previous = node;
}

void weir_wheel_remove(struct weir_wheel_node *node)
{
    if (!node->next)
        return;
    node->previous->next = node->next;
    node->next->previous = node->previous;
    node->previous = node->next = NULL;
}

void weir_wheel_set(struct weir_wheel *wheel, struct weir_wheel_node *node, uint64_t deadline_ms)
{
    node->deadline_ms = deadline_ms;
    if (node->next) {
        if (deadline_ms / WEIR_WHEEL_TICK_MS + 1 >= node->tick)
            return;
        weir_wheel_remove(node);
    }
    wheel_put(wheel, node);
}

struct weir_wheel_node *weir_wheel_expire(struct weir_wheel *wheel, uint64_t now_ms)
{
    uint64_t now_tick = now_ms / WEIR_WHEEL_TICK_MS;
    /* After a long sleep every slot is passed once, not once a tick. */
    if (now_tick > wheel->tick + WEIR_WHEEL_SLOTS)
        wheel->tick = now_tick - WEIR_WHEEL_SLOTS;
    for (; wheel->tick <= now_tick; wheel->tick++) {
        struct weir_wheel_node *slot = &wheel->slots[wheel->tick % WEIR_WHEEL_SLOTS];
        struct weir_wheel_node *node = slot->next;
        while (node != slot) {
            struct weir_wheel_node *next = node->next;
            if (node->deadline_ms <= now_ms) {
                weir_wheel_remove(node);
                return node;
            }
            if (node->tick <= wheel->tick) { /* its deadline has moved: put it again, later */
                weir_wheel_remove(node);
                wheel_put(wheel, node);
            }
            node = next;
        }
    }
    return NULL;
}
