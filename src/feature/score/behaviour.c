/* SPDX-License-Identifier: Apache-2.0 */
/* see behaviour.h */
#include "feature/score/behaviour.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <weir/error.h>

#define NS_PER_TICK 15625 /* so that a whole number of milliseconds is one of ticks */
#define TICKS_PER_MS 64
#define PLACES 4
#define PLACE_BYTES 15
#define TAG_BITS 22
#define ROUTE_BITS 10
#define LAST_BITS 36
#define GAP_BITS 26 /* WEIR_GAP_MAX_MS needs them */
#define GAP_MAX ((uint64_t)WEIR_GAP_MAX_MS * TICKS_PER_MS)
#define BACKWARDS (UINT64_C(1024) * TICKS_PER_MS) /* how far clocks of threads may be apart */
#define SPINS 100 /* before the thread that holds a lock may need this processor */

_Static_assert(TAG_BITS + ROUTE_BITS == 32 && LAST_BITS + GAP_BITS <= 64, "15 bytes a client");
_Static_assert(GAP_MAX <= UINT64_C(1) << GAP_BITS, "every gap that counts has room");

/* tag | route << TAG_BITS (4 bytes; tag 0: free), last | gap << LAST_BITS (8), then the runs:
 * bytes, so that four places and the lock are one cache line. */
struct place {
    uint8_t bytes[PLACE_BYTES];
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
    uint64_t last, gap; /* ticks */
    uint32_t route, steady, same_route, fresh;
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

static uint32_t name_at(const struct place *place)
{
    uint32_t name;
    memcpy(&name, place->bytes, sizeof name);
    return name;
}

static uint32_t tag_at(const struct place *place)
{
    return name_at(place) & ((1U << TAG_BITS) - 1);
}

static struct client unpack(const struct place *place)
{
    uint64_t body;
    memcpy(&body, place->bytes + 4, sizeof body);
    return (struct client){
        .last = body & ((UINT64_C(1) << LAST_BITS) - 1),
        .gap = body >> LAST_BITS,
        .route = name_at(place) >> TAG_BITS,
        .steady = place->bytes[12],
        .same_route = place->bytes[13],
        .fresh = place->bytes[14],
    };
}

static void pack(struct place *place, uint32_t tag, const struct client *client)
{
    uint32_t name = tag | client->route << TAG_BITS;
    uint64_t body = client->last | client->gap << LAST_BITS;
    memcpy(place->bytes, &name, sizeof name);
    memcpy(place->bytes + 4, &body, sizeof body);
    place->bytes[12] = (uint8_t)client->steady;
    place->bytes[13] = (uint8_t)client->same_route;
    place->bytes[14] = (uint8_t)client->fresh;
}

/* How long ago a place was used; 0 for a time that is a little later than now. */
static uint64_t age_of(uint64_t last, uint64_t now)
{
    uint64_t age = (now - last) & ((UINT64_C(1) << LAST_BITS) - 1);
    return age >= (UINT64_C(1) << LAST_BITS) - BACKWARDS ? 0 : age;
}

/* The client's place, else a free one, else that of the client that was away for longest. */
static struct place *find(struct bucket *bucket, uint32_t tag, uint64_t now)
{
    struct place *best = NULL;
    uint64_t oldest = 0;
    for (int i = 0; i < PLACES; i++) {
        struct place *place = &bucket->places[i];
        uint32_t found = tag_at(place);
        if (found == tag)
            return place;
        uint64_t age = found == 0 ? UINT64_MAX : age_of(unpack(place).last, now);
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

/* Whether two gaps are alike, and the later one is none of a burst. */
static bool continues(uint64_t before, uint64_t gap, const struct weir_event *event)
{
    uint64_t apart = gap > before ? gap - before : before - gap;
    return event->spread > 0 ? apart * 100 < before * event->spread
                             : apart < (uint64_t)event->within_ms * TICKS_PER_MS;
}

/* The run of gaps that this one ends. */
static uint32_t steady_of(const struct client *before, uint64_t gap, const struct weir_event *event)
{
    uint64_t least = event->spread > 0 ? TICKS_PER_MS : (uint64_t)event->within_ms * TICKS_PER_MS;
    if (gap < least || gap >= GAP_MAX)
        return 0;
    return before->steady > 0 && continues(before->gap, gap, event) ? longer(before->steady) : 1;
}

static uint32_t fresh_of(uint32_t before, const struct weir_event *event)
{
    return event->connection == WEIR_CONNECTION_UNKNOWN ? before
           : event->connection == WEIR_CONNECTION_NEW   ? longer(before)
                                                        : 0;
}

/* The client with one request more; `before` is NULL at its first. */
static struct client follow(const struct client *before, const struct weir_event *event,
                            uint64_t now)
{
    uint32_t route = event->route & ((1U << ROUTE_BITS) - 1);
    struct client after = {.last = now, .route = route, .same_route = event->routed};
    after.fresh = fresh_of(before ? before->fresh : 0, event);
    if (!before)
        return after;
    uint64_t age = (now - before->last) & ((UINT64_C(1) << LAST_BITS) - 1);
    uint64_t gap = age_of(before->last, now);
    if (gap != age) /* a time that goes back changes nothing */
        after.last = before->last;
    after.steady = steady_of(before, gap, event);
    after.gap = gap < GAP_MAX ? gap : 0;
    if (event->routed && before->same_route > 0 && before->route == route)
        after.same_route = longer(before->same_route);
    return after;
}

static struct weir_habit habit_of(const struct client *client)
{
    return (struct weir_habit){(uint8_t)client->steady, (uint8_t)client->same_route,
                               (uint8_t)client->fresh};
}

static void find_habit(struct weir_behaviour *behaviour, const struct weir_event *event,
                       struct weir_habit *habit, bool keep)
{
    struct bucket *bucket = &behaviour->buckets[event->client[0] & behaviour->mask];
    uint32_t tag = tag_of(event->client[0]);
    uint64_t now = event->now_ns / NS_PER_TICK & ((UINT64_C(1) << LAST_BITS) - 1);
    lock(bucket);
    struct place *place = find(bucket, tag, now);
    struct client before = unpack(place);
    bool known = tag_at(place) == tag;
    bool evicts = keep && !known && tag_at(place) != 0;
    struct client after = follow(known ? &before : NULL, event, now);
    if (keep)
        pack(place, tag, &after);
    unlock(bucket);
    if (evicts)
        atomic_fetch_add_explicit(&behaviour->evicted, 1, memory_order_relaxed);
    *habit = habit_of(&after);
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
    *habit = (struct weir_habit){0};
    lock(bucket);
    for (int i = 0; i < PLACES; i++) {
        if (tag_at(&bucket->places[i]) != tag)
            continue;
        struct client found = unpack(&bucket->places[i]);
        *habit = habit_of(&found);
    }
    unlock(bucket);
}
