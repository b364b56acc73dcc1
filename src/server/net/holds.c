/* SPDX-License-Identifier: Apache-2.0 */
/* see holds.h */
#include "server/net/holds.h"

#include <stdlib.h>
#include <string.h>

#include "server/daemon/worker.h"
#include "server/net/connection.h"
#include "server/net/listener.h"

#define NS_PER_MS UINT64_C(1000000)

struct weir_held {
    struct weir_held *previous, *next; /* in the order of until_ms; free ones by `next` */
    struct weir_holds *holds;
    struct weir_slot *slot;
    uint64_t until_ms;
    int place;
};

/* --- Places ----------------------------------------------------------------------------------- */

uint32_t weir_hold_prefix(const struct weir_address *address)
{
    struct weir_address prefix = *address;
    uint64_t words[2];
    weir_address_mask(&prefix, prefix.family == 4 ? 32 : 64);
    memcpy(words, prefix.bytes, sizeof words);
    uint64_t mixed = (words[0] ^ prefix.family) * UINT64_C(0x9e3779b97f4a7c15);
    uint32_t hash = (uint32_t)(mixed >> 32);
    return hash == WEIR_HOLD_FREE || hash == WEIR_HOLD_DELAY ? 1 : hash;
}

static bool has_too_many(const struct weir_hold_places *places, uint32_t prefix)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < WEIR_HELD_MAX; i++)
        count += atomic_load_explicit(&places->prefixes[i], memory_order_relaxed) == prefix;
    return count > WEIR_HELD_PREFIX_MAX;
}

/* The place is taken before the count, so that two workers cannot both take the last one of a
 * prefix. */
int weir_hold_place_take(struct weir_hold_places *places, uint32_t prefix)
{
    for (int i = 0; i < WEIR_HELD_MAX; i++) {
        uint32_t free_place = WEIR_HOLD_FREE;
        if (atomic_load_explicit(&places->prefixes[i], memory_order_relaxed) != WEIR_HOLD_FREE ||
            !atomic_compare_exchange_strong(&places->prefixes[i], &free_place, prefix))
            continue;
        if (prefix == WEIR_HOLD_DELAY || !has_too_many(places, prefix))
            return i;
        weir_hold_place_give(places, i);
        return -1;
    }
    return -1;
}

void weir_hold_place_give(struct weir_hold_places *places, int place)
{
    atomic_store(&places->prefixes[place], WEIR_HOLD_FREE);
}

/* --- One worker's ----------------------------------------------------------------------------- */

static void on_due(uv_timer_t *timer);

static uint64_t now_ms(const struct weir_holds *holds)
{
    return uv_now(holds->worker->loop);
}

static void set_timer(struct weir_holds *holds)
{
    uint64_t now = now_ms(holds);
    if (!holds->first)
        uv_timer_stop(&holds->timer);
    else
        uv_timer_start(&holds->timer, on_due,
                       holds->first->until_ms > now ? holds->first->until_ms - now : 0, 0);
}

/* Takes an entry off the list, and gives its place back. */
static struct weir_slot *let_go(struct weir_held *held)
{
    struct weir_holds *holds = held->holds;
    struct weir_slot *slot = held->slot;
    if (held->previous)
        held->previous->next = held->next;
    else
        holds->first = held->next;
    if (held->next)
        held->next->previous = held->previous;
    else
        holds->last = held->previous;
    weir_hold_place_give(holds->places, held->place);
    held->next = holds->free;
    holds->free = held;
    slot->owner = NULL;
    slot->drop = NULL;
    return slot;
}

static void write_first(struct weir_holds *holds)
{
    struct weir_slot *slot = let_go(holds->first);
    slot->waiting--;
    weir_worker_mark(holds->worker, slot->connection);
}

static void on_due(uv_timer_t *timer)
{
    struct weir_holds *holds = timer->data;
    uint64_t now = now_ms(holds);
    while (holds->first && holds->first->until_ms <= now)
        write_first(holds);
    set_timer(holds);
}

/* The slot's connection goes first. */
static void drop(struct weir_slot *slot)
{
    let_go(slot->owner);
}

void weir_holds_open(struct weir_holds *holds, struct weir_worker *worker)
{
    holds->worker = worker;
    uv_timer_init(worker->loop, &holds->timer);
    holds->timer.data = holds;
}

void weir_holds_free(struct weir_holds *holds)
{
    free(holds->held);
}

/* False: no memory. */
static bool make_entries(struct weir_holds *holds)
{
    if (holds->held)
        return true;
    holds->held = calloc(WEIR_HELD_MAX, sizeof *holds->held);
    for (int i = 0; holds->held && i < WEIR_HELD_MAX; i++) {
        holds->held[i].holds = holds;
        holds->held[i].next = holds->free;
        holds->free = &holds->held[i];
    }
    return holds->held;
}

static void link_entry(struct weir_holds *holds, struct weir_held *held)
{
    struct weir_held *before = holds->last;
    while (before && before->until_ms > held->until_ms)
        before = before->previous;
    held->previous = before;
    held->next = before ? before->next : holds->first;
    if (held->next)
        held->next->previous = held;
    else
        holds->last = held;
    if (before)
        before->next = held;
    else
        holds->first = held;
}

bool weir_holds_take(struct weir_holds *holds, struct weir_slot *slot, uint64_t delay_ns,
                     uint32_t prefix)
{
    holds->places = &slot->connection->listener->pool->held;
    int place = holds->worker->draining || !make_entries(holds)
                    ? -1
                    : weir_hold_place_take(holds->places, prefix);
    if (place < 0)
        return false;
    struct weir_held *held = holds->free; /* as many as places */
    holds->free = held->next;
    held->slot = slot;
    held->place = place;
    held->until_ms = now_ms(holds) + delay_ns / NS_PER_MS + (delay_ns % NS_PER_MS != 0);
    link_entry(holds, held);
    slot->owner = held;
    slot->drop = drop;
    slot->waiting++;
    set_timer(holds);
    return true;
}

void weir_holds_tick(struct weir_holds *holds)
{
    while (holds->worker->draining && holds->first)
        write_first(holds);
}
