/* SPDX-License-Identifier: Apache-2.0 */
/* see behaviour.h */
#include "feature/score/behaviour.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <weir/error.h>

#define NS_PER_MS 1000000
#define PLACES 5
#define TAG_BITS 22
#define ROUTE_BITS 10
#define LAST_BITS 28
#define GAP_BITS 20       /* WEIR_GAP_MAX_MS needs them */
#define BACKWARDS_MS 1024 /* how far clocks of threads may be apart */
#define SPINS 100         /* before the thread that holds a lock may need this processor */

_Static_assert(TAG_BITS + ROUTE_BITS == 32 && LAST_BITS + GAP_BITS + 16 == 64, "12 bytes a client");

/* `body` is in two halves, so that five places and the lock are one cache line. */
struct place {
    uint32_t name;    /* tag | route << TAG_BITS; tag 0: free */
    uint32_t body[2]; /* last | gap << 28 | steady << 48 | same_route << 56 */
};

struct bucket {
    atomic_uint lock;
    struct place places[PLACES];
};
_Static_assert(sizeof(struct bucket) == 64, "a bucket is a cache line");

struct weir_behaviour {
    atomic_uint references;
    _Atomic uint64_t evicted;
    uint64_t mask;          /* buckets - 1 */
    void *memory;           /* has a bucket more than there are, so that they can begin at a line */
    struct bucket *buckets; /* within it */
};

/* A place, unpacked. */
struct client {
    uint32_t last_ms, gap_ms, route, steady, same_route;
};

/* --- The table -------------------------------------------------------------------------------- */

int weir_behaviour_open(struct weir_behaviour **behaviour, uint64_t clients)
{
    uint64_t buckets = 1;
    if (clients == 0 || clients > WEIR_BEHAVIOUR_CLIENTS_MAX)
        return WEIR_ERR_RANGE;
    while (buckets * PLACES < clients)
        buckets *= 2;
    struct weir_behaviour *opened = calloc(1, sizeof *opened);
    void *memory = calloc(buckets + 1, sizeof(struct bucket)); /* large: pages stay untouched */
    if (!opened || !memory) {
        free(opened);
        free(memory);
        return WEIR_ERR_MEMORY;
    }
    atomic_init(&opened->references, 1);
    opened->mask = buckets - 1;
    opened->memory = memory;
    uintptr_t line = sizeof(struct bucket) - 1, first = (uintptr_t)memory;
    opened->buckets = (struct bucket *)((first + line) & ~line);
    *behaviour = opened;
    return 0;
}

struct weir_behaviour *weir_behaviour_ref(struct weir_behaviour *behaviour)
{
    if (behaviour)
        atomic_fetch_add_explicit(&behaviour->references, 1, memory_order_relaxed);
    return behaviour;
}

void weir_behaviour_unref(struct weir_behaviour *behaviour)
{
    if (!behaviour ||
        atomic_fetch_sub_explicit(&behaviour->references, 1, memory_order_acq_rel) > 1)
        return;
    free(behaviour->memory);
    free(behaviour);
}

uint64_t weir_behaviour_room(const struct weir_behaviour *behaviour)
{
    return (behaviour->mask + 1) * PLACES;
}

uint64_t weir_behaviour_evicted(const struct weir_behaviour *behaviour)
{
    return atomic_load_explicit(&behaviour->evicted, memory_order_relaxed);
}

/* --- Buckets ---------------------------------------------------------------------------------- */

static uint32_t tag_of(uint64_t hash)
{
    uint32_t tag = (uint32_t)(hash >> (64 - TAG_BITS));
    return tag > 0 ? tag : 1;
}

static void lock(struct bucket *bucket)
{
    unsigned spins = 0;
    while (atomic_exchange_explicit(&bucket->lock, 1, memory_order_acquire) != 0) {
        if (++spins % SPINS == 0)
            sched_yield();
#if defined(__x86_64__)
        else
            __builtin_ia32_pause();
#endif
    }
}

static void unlock(struct bucket *bucket)
{
    atomic_store_explicit(&bucket->lock, 0, memory_order_release);
}

static uint32_t tag_at(const struct place *place)
{
    return place->name & ((1U << TAG_BITS) - 1);
}

static struct client unpack(const struct place *place)
{
    uint64_t body = (uint64_t)place->body[1] << 32 | place->body[0];
    return (struct client){
        .last_ms = (uint32_t)body & ((1U << LAST_BITS) - 1),
        .gap_ms = (uint32_t)(body >> LAST_BITS) & ((1U << GAP_BITS) - 1),
        .route = place->name >> TAG_BITS,
        .steady = (uint32_t)(body >> 48) & 0xff,
        .same_route = (uint32_t)(body >> 56),
    };
}

static void pack(struct place *place, uint32_t tag, const struct client *client)
{
    uint64_t body = client->last_ms | (uint64_t)client->gap_ms << LAST_BITS |
                    (uint64_t)client->steady << 48 | (uint64_t)client->same_route << 56;
    place->name = tag | client->route << TAG_BITS;
    place->body[0] = (uint32_t)body;
    place->body[1] = (uint32_t)(body >> 32);
}

/* How long ago a place was used; 0 for a time that is a little later than now. */
static uint32_t age_of(uint32_t last_ms, uint32_t now_ms)
{
    uint32_t age = (now_ms - last_ms) & ((1U << LAST_BITS) - 1);
    return age >= (1U << LAST_BITS) - BACKWARDS_MS ? 0 : age;
}

/* The client's place, else a free one, else that of the client that was away for longest. */
static struct place *find(struct bucket *bucket, uint32_t tag, uint32_t now_ms)
{
    struct place *best = NULL;
    uint32_t oldest = 0;
    for (int i = 0; i < PLACES; i++) {
        struct place *place = &bucket->places[i];
        uint32_t found = tag_at(place);
        if (found == tag)
            return place;
        uint32_t age = found == 0 ? UINT32_MAX : age_of(unpack(place).last_ms, now_ms);
        if (!best || age > oldest) {
            best = place;
            oldest = age;
        }
    }
    return best;
}

/* --- Runs ------------------------------------------------------------------------------------- */

static uint32_t longer(uint32_t run)
{
    return run < WEIR_RUN_MAX ? run + 1 : run;
}

/* The run of gaps that this one ends. */
static uint32_t steady_of(const struct client *before, uint32_t gap_ms, uint32_t within_ms)
{
    if (gap_ms < within_ms || gap_ms >= WEIR_GAP_MAX_MS)
        return 0;
    uint32_t apart = gap_ms > before->gap_ms ? gap_ms - before->gap_ms : before->gap_ms - gap_ms;
    return before->steady > 0 && apart < within_ms ? longer(before->steady) : 1;
}

/* The client with one request more; `before` is NULL at its first. */
static struct client follow(const struct client *before, const struct weir_event *event,
                            uint32_t now_ms)
{
    uint32_t route = event->route & ((1U << ROUTE_BITS) - 1);
    struct client after = {.last_ms = now_ms, .route = route, .same_route = event->routed};
    if (!before)
        return after;
    uint32_t age = (now_ms - before->last_ms) & ((1U << LAST_BITS) - 1);
    uint32_t gap_ms = age_of(before->last_ms, now_ms);
    if (gap_ms != age) /* a time that goes back changes nothing */
        after.last_ms = before->last_ms;
    after.steady = steady_of(before, gap_ms, event->within_ms);
    after.gap_ms = gap_ms < WEIR_GAP_MAX_MS ? gap_ms : 0;
    if (event->routed && before->same_route > 0 && before->route == route)
        after.same_route = longer(before->same_route);
    return after;
}

static void find_habit(struct weir_behaviour *behaviour, const struct weir_event *event,
                       struct weir_habit *habit, bool keep)
{
    struct bucket *bucket = &behaviour->buckets[event->client[0] & behaviour->mask];
    uint32_t tag = tag_of(event->client[0]);
    uint32_t now_ms = (uint32_t)(event->now_ns / NS_PER_MS) & ((1U << LAST_BITS) - 1);
    lock(bucket);
    struct place *place = find(bucket, tag, now_ms);
    struct client before = unpack(place);
    bool known = tag_at(place) == tag;
    bool evicts = keep && !known && tag_at(place) != 0;
    struct client after = follow(known ? &before : NULL, event, now_ms);
    if (keep)
        pack(place, tag, &after);
    unlock(bucket);
    if (evicts)
        atomic_fetch_add_explicit(&behaviour->evicted, 1, memory_order_relaxed);
    habit->steady = (uint8_t)after.steady;
    habit->same_route = (uint8_t)after.same_route;
}

void weir_behaviour_prefetch(const struct weir_behaviour *behaviour, const uint64_t client[2])
{
    __builtin_prefetch(&behaviour->buckets[client[0] & behaviour->mask], 1, 3);
}

void weir_behaviour_add(struct weir_behaviour *behaviour, const struct weir_event *event,
                        struct weir_habit *habit)
{
    find_habit(behaviour, event, habit, true);
}

void weir_behaviour_look(struct weir_behaviour *behaviour, const struct weir_event *event,
                         struct weir_habit *habit)
{
    find_habit(behaviour, event, habit, false);
}

void weir_behaviour_recall(struct weir_behaviour *behaviour, const uint64_t client[2],
                           struct weir_habit *habit)
{
    struct bucket *bucket = &behaviour->buckets[client[0] & behaviour->mask];
    uint32_t tag = tag_of(client[0]);
    *habit = (struct weir_habit){0, 0};
    lock(bucket);
    for (int i = 0; i < PLACES; i++) {
        if (tag_at(&bucket->places[i]) != tag)
            continue;
        struct client found = unpack(&bucket->places[i]);
        *habit = (struct weir_habit){(uint8_t)found.steady, (uint8_t)found.same_route};
    }
    unlock(bucket);
}
