/* SPDX-License-Identifier: Apache-2.0 */
/* A timing wheel: deadlines of many connections, a few stores each.
 *
 * Source: Varghese, Lauck, "Hashed and Hierarchical Timing Wheels" (1987), scheme 6, made lazy: a
 * request that moves its connection's deadline later only writes the new deadline; the node stays
 * in its slot and is moved when the hand comes by. Only a deadline that comes nearer moves a node.
 *
 *   slot (WEIR_WHEEL_TICK_MS each): 0 | 1 | 2 | … | 255; the hand advances with time; a deadline
 *   further away than the wheel reaches waits in the last slot and is put again.
 *
 * Memory: 32 bytes a node, embedded in its object. Precision: one tick, late, never early.
 * Threads: one owner.
 */
#ifndef WEIR_SERVER_NET_WHEEL_H
#define WEIR_SERVER_NET_WHEEL_H

#include <stdint.h>

#define WEIR_WHEEL_TICK_MS 250
#define WEIR_WHEEL_SLOTS 256 /* reaches 64 s */

struct weir_wheel_node {
    struct weir_wheel_node *previous, *next; /* NULL: not in a wheel */
    uint64_t deadline_ms;
    uint64_t tick; /* when the hand comes to its slot */
};

struct weir_wheel {
    uint64_t tick; /* everything due before it is done */
    struct weir_wheel_node slots[WEIR_WHEEL_SLOTS];
};

void weir_wheel_init(struct weir_wheel *wheel, uint64_t now_ms);

/* Sets a node's deadline; adds a node that is not in the wheel (zeroed). */
void weir_wheel_set(struct weir_wheel *wheel, struct weir_wheel_node *node, uint64_t deadline_ms);
void weir_wheel_remove(struct weir_wheel_node *node);

/* Takes out one node whose deadline has passed; NULL: none any more. Call until NULL. */
struct weir_wheel_node *weir_wheel_expire(struct weir_wheel *wheel, uint64_t now_ms);

#endif
