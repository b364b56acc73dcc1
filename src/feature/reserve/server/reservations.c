/* SPDX-License-Identifier: Apache-2.0 */
/* see reservations.h */
#include "feature/reserve/server/reservations.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define SECOND_NS UINT64_C(1000000000)
#define NONE UINT32_MAX

/* Seconds of the ring: more than the longest life, so that each has one turn's reservations. */
#define RING 4096
_Static_assert(WEIR_RESERVATION_LIFE_MAX_NS / SECOND_NS + 2 < RING, "a life is within the ring");
#define CHAINS 16384
#define GIVE_UP_NS WEIR_RESERVATION_LIFE_MAX_NS /* after its end; the engine may refuse sooner */

struct place {
    uint64_t id;
    uint64_t ends_at_ns;     /* when it is looked at next */
    uint64_t given_up_ns;    /* then no more */
    uint32_t next, previous; /* in its second; free ones: next */
    uint32_t chained;        /* the next of its chain */
    uint32_t caller;         /* whose it is */
    uint16_t size;
    char token[WEIR_RESERVATION_TEXT_MAX];
};

/* A holder of places. */
struct caller {
    uint64_t hash;
    uint32_t held;
    uint32_t chained; /* the next of its chain, or of those that are free */
};

struct weir_reservations {
    pthread_mutex_t mutex;
    _Atomic uint32_t count; /* open or claimed */
    _Atomic uint64_t refused[WEIR_RESERVATIONS_CLAIMS];
    uint32_t max, free, touched;
    uint32_t free_caller, touched_callers;
    uint64_t second; /* all before it were looked through */
    uint32_t ring[RING], chains[CHAINS], callers_chains[CHAINS];
    struct place *places;
    struct caller *callers; /* as many: each holds a place */
};

int weir_reservations_open(struct weir_reservations **reservations, uint32_t max)
{
    struct weir_reservations *r = calloc(1, sizeof *r);
    struct place *places = calloc(max, sizeof *places);
    struct caller *callers = calloc(max, sizeof *callers);
    if (!r || !places || !callers) {
        free(callers);
        free(places);
        free(r);
        return WEIR_ERR_MEMORY;
    }
    r->places = places;
    r->callers = callers;
    r->max = max;
    r->free = r->free_caller = NONE;
    memset(r->ring, 0xff, sizeof r->ring);
    memset(r->chains, 0xff, sizeof r->chains);
    memset(r->callers_chains, 0xff, sizeof r->callers_chains);
    pthread_mutex_init(&r->mutex, NULL);
    *reservations = r;
    return 0;
}

void weir_reservations_close(struct weir_reservations *reservations)
{
    if (!reservations)
        return;
    pthread_mutex_destroy(&reservations->mutex);
    free(reservations->callers);
    free(reservations->places);
    free(reservations);
}

uint32_t weir_reservations_count(const struct weir_reservations *reservations)
{
    return atomic_load_explicit(&reservations->count, memory_order_relaxed);
}

uint64_t weir_reservations_refused(const struct weir_reservations *reservations,
                                   enum weir_reservations_claim reason)
{
    return atomic_load_explicit(&reservations->refused[reason], memory_order_relaxed);
}

/* --- Callers ---------------------------------------------------------------------------------- */

/* What points at a caller in its chain; at NONE: it holds nothing. */
static uint32_t *find_caller(struct weir_reservations *r, uint64_t hash)
{
    uint32_t *link = &r->callers_chains[hash % CHAINS];
    while (*link != NONE && r->callers[*link].hash != hash)
        link = &r->callers[*link].chained;
    return link;
}

/* The caller holds one place more. Returns who it is; there are as many as there are places. */
static uint32_t hold(struct weir_reservations *r, uint64_t hash)
{
    uint32_t *link = find_caller(r, hash), n = *link;
    if (n == NONE) {
        n = r->free_caller;
        if (n != NONE)
            r->free_caller = r->callers[n].chained;
        else
            n = r->touched_callers++;
        r->callers[n] = (struct caller){.hash = hash, .chained = NONE};
        *link = n;
    }
    r->callers[n].held++;
    return n;
}

/* One place less. */
static void let_go(struct weir_reservations *r, uint32_t n)
{
    struct caller *caller = &r->callers[n];
    if (--caller->held > 0)
        return;
    *find_caller(r, caller->hash) = caller->chained;
    caller->chained = r->free_caller;
    r->free_caller = n;
}

/* --- Places ----------------------------------------------------------------------------------- */

static enum weir_reservations_claim may_claim(struct weir_reservations *r, uint64_t caller)
{
    uint32_t left = r->max - weir_reservations_count(r), n = *find_caller(r, caller);
    if (left == 0)
        return WEIR_RESERVATIONS_FULL;
    return n != NONE && r->callers[n].held >= left ? WEIR_RESERVATIONS_SHARE
                                                   : WEIR_RESERVATIONS_CLAIMED;
}

enum weir_reservations_claim weir_reservations_claim(struct weir_reservations *r, uint64_t caller,
                                                     uint32_t *place)
{
    pthread_mutex_lock(&r->mutex);
    enum weir_reservations_claim claim = may_claim(r, caller);
    if (claim == WEIR_RESERVATIONS_CLAIMED) {
        uint32_t n = r->free;
        if (n != NONE)
            r->free = r->places[n].next;
        else
            n = r->touched++;
        r->places[n].caller = hold(r, caller);
        atomic_fetch_add(&r->count, 1);
        *place = n;
    } else {
        atomic_fetch_add(&r->refused[claim], 1);
    }
    pthread_mutex_unlock(&r->mutex);
    return claim;
}

/* A place in no second is free again. */
static void free_place(struct weir_reservations *r, uint32_t n)
{
    let_go(r, r->places[n].caller);
    r->places[n].next = r->free;
    r->free = n;
    atomic_fetch_sub(&r->count, 1);
}

void weir_reservations_unclaim(struct weir_reservations *r, uint32_t place)
{
    pthread_mutex_lock(&r->mutex);
    free_place(r, place);
    pthread_mutex_unlock(&r->mutex);
}

static uint32_t *chain_of(struct weir_reservations *r, uint64_t id)
{
    return &r->chains[id % CHAINS]; /* an id is as good as random */
}

static uint32_t *ring_of(struct weir_reservations *r, uint64_t ends_at_ns)
{
    return &r->ring[ends_at_ns / SECOND_NS % RING];
}

/* Puts a place into the second of its end; and takes it out. */
static void enter(struct weir_reservations *r, uint32_t n)
{
    struct place *place = &r->places[n];
    uint32_t *second = ring_of(r, place->ends_at_ns);
    place->previous = NONE;
    place->next = *second;
    if (*second != NONE)
        r->places[*second].previous = n;
    *second = n;
    if (r->second == 0 || place->ends_at_ns / SECOND_NS < r->second)
        r->second = place->ends_at_ns / SECOND_NS;
}

static void leave(struct weir_reservations *r, const struct place *place)
{
    if (place->previous != NONE)
        r->places[place->previous].next = place->next;
    else
        *ring_of(r, place->ends_at_ns) = place->next;
    if (place->next != NONE)
        r->places[place->next].previous = place->previous;
}

void weir_reservations_add(struct weir_reservations *r, uint32_t n, uint64_t caller, uint64_t id,
                           uint64_t ends_at_ns, struct weir_bytes token)
{
    pthread_mutex_lock(&r->mutex);
    uint32_t *chain = chain_of(r, id);
    struct place *place = &r->places[n];
    let_go(r, place->caller); /* first: there may be no room for one caller more */
    place->caller = hold(r, caller);
    place->id = id;
    place->ends_at_ns = ends_at_ns;
    place->given_up_ns = ends_at_ns + GIVE_UP_NS;
    place->size = (uint16_t)token.size;
    memcpy(place->token, token.data, token.size);
    enter(r, n);
    place->chained = *chain;
    *chain = n;
    pthread_mutex_unlock(&r->mutex);
}

/* Gives a place back; `link` is what points at it in its chain. */
static void give_back(struct weir_reservations *r, uint32_t *link)
{
    uint32_t n = *link;
    struct place *place = &r->places[n];
    *link = place->chained;
    leave(r, place);
    free_place(r, n);
}

/* What points at a reservation in its chain; NULL: it is not there. */
static uint32_t *find(struct weir_reservations *r, uint64_t id)
{
    uint32_t *link = chain_of(r, id);
    while (*link != NONE && r->places[*link].id != id)
        link = &r->places[*link].chained;
    return *link != NONE ? link : NULL;
}

void weir_reservations_remove(struct weir_reservations *r, uint64_t id)
{
    pthread_mutex_lock(&r->mutex);
    uint32_t *link = find(r, id);
    if (link)
        give_back(r, link);
    pthread_mutex_unlock(&r->mutex);
}

/* One of this second that has ended; NONE: there is none. */
static uint32_t find_due(const struct weir_reservations *r, uint64_t second, uint64_t now_ns)
{
    uint32_t n = r->ring[second % RING];
    while (n != NONE && r->places[n].ends_at_ns > now_ns)
        n = r->places[n].next;
    return n;
}

/* One that was returned as due: it is returned again later, or is not kept any longer. */
static void keep(struct weir_reservations *r, uint32_t n, uint64_t now_ns)
{
    struct place *place = &r->places[n];
    if (now_ns >= place->given_up_ns || weir_reservations_count(r) > r->max / 2) {
        give_back(r, find(r, place->id));
        return;
    }
    leave(r, place);
    place->ends_at_ns = now_ns + WEIR_RESERVATION_AGAIN_NS;
    enter(r, n);
}

size_t weir_reservations_due(struct weir_reservations *r, uint64_t now_ns, uint64_t *id,
                             char token[WEIR_RESERVATION_TEXT_MAX])
{
    uint64_t last = now_ns / SECOND_NS;
    size_t size = 0;
    pthread_mutex_lock(&r->mutex);
    uint32_t n = NONE;
    if (last - r->second >= RING)
        r->second = last - RING + 1; /* after a long pause: each second of the ring once */
    while (r->second != 0 && (n = find_due(r, r->second, now_ns)) == NONE && r->second < last)
        r->second++;
    if (n != NONE) {
        size = r->places[n].size;
        *id = r->places[n].id;
        memcpy(token, r->places[n].token, size);
        keep(r, n, now_ns);
    }
    pthread_mutex_unlock(&r->mutex);
    return size;
}
