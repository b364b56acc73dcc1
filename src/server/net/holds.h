/* SPDX-License-Identifier: Apache-2.0 */
/* Replies that are held back: those of requests that a limit delays, and denials that come late.
 *
 * A listener holds at most WEIR_HELD_MAX replies at a time, over all workers, and of denials at
 * most WEIR_HELD_PREFIX_MAX of one prefix (an IPv4 address, the /64 of an IPv6 address); a reply
 * beyond that goes out at once. So no client fills a listener with its denials. Delays have no
 * limit by prefix: a reply that goes out early is a way around the limit that delays it, and that
 * limit bounds how many it delays.
 *
 * A held reply is a slot that waits (net/front.h): replies behind it on its connection wait, too.
 * It is written up to a millisecond late, and at once when the worker shuts down.
 *
 * Memory: 4 KiB a listener, and 48 KiB a worker from the first held reply on. Threads: the places
 * are shared by all workers, without locks; a struct weir_holds belongs to one worker.
 */
#ifndef WEIR_SERVER_NET_HOLDS_H
#define WEIR_SERVER_NET_HOLDS_H

#include <stdbool.h>
#include <uv.h>

#include "core/text/address.h"
#include "server/daemon/limits.h"

struct weir_slot;
struct weir_worker;

/* What is held of one listener: for each place a hash of the prefix, or one of two other values. */
struct weir_hold_places {
    _Atomic uint32_t prefixes[WEIR_HELD_MAX];
};

#define WEIR_HOLD_FREE 0
#define WEIR_HOLD_DELAY UINT32_MAX /* a delay, of any prefix */

/* A hash of the prefix of an address, neither of the two values. Two prefixes may share one. */
uint32_t weir_hold_prefix(const struct weir_address *address);

/* Takes a place for a denial of `prefix`, or for WEIR_HOLD_DELAY. Returns its number; -1: none is
 * left. */
int weir_hold_place_take(struct weir_hold_places *places, uint32_t prefix);
void weir_hold_place_give(struct weir_hold_places *places, int place);

struct weir_held;

/* The replies that one worker holds of one listener. */
struct weir_holds {
    uv_timer_t timer;
    struct weir_worker *worker;
    struct weir_hold_places *places; /* of the listener; set by the first reply */
    struct weir_held *held;          /* WEIR_HELD_MAX of them; NULL: none was held yet */
    struct weir_held *first, *last, *free;
};

/* The worker's loop closes the timer before `holds` is freed. */
void weir_holds_open(struct weir_holds *holds, struct weir_worker *worker);
void weir_holds_free(struct weir_holds *holds);

/* Lets a slot of the listener that waits for nothing else wait for so long; sets slot->drop and
 * slot->owner.
 * `prefix` as for weir_hold_place_take. False: it is not held. */
bool weir_holds_take(struct weir_holds *holds, struct weir_slot *slot, uint64_t delay_ns,
                     uint32_t prefix);

/* Lets all go, where the worker shuts down. Once a tick. */
void weir_holds_tick(struct weir_holds *holds);

#endif
