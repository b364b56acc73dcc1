/* see redis_limits.h */
#include "server/redis_limits.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "rules/division.h"
#include "server/limit_room.h"

struct made {
    struct weir_limit limit;
    struct weir_limit part; /* limit.local, where that is not NULL */
};

struct weir_redis_limits {
    pthread_mutex_t lock;
    uint32_t count, max, nodes;
    uint32_t mask; /* places - 1: open addressing, at most half full */
    struct made **places;
    struct weir_limit_room room;
};

int weir_redis_limits_open(struct weir_redis_limits **limits, uint32_t max,
                           const struct weir_table *table, uint32_t nodes)
{
    struct weir_redis_limits *made = calloc(1, sizeof *made);
    if (!made)
        return WEIR_ERR_MEMORY;
    uint32_t size = 2;
    while (size < 2 * max)
        size *= 2;
    made->max = max;
    made->room = (struct weir_limit_room){.table = table, .max = max};
    made->nodes = nodes;
    made->mask = size - 1;
    made->places = calloc(size, sizeof *made->places);
    if (!made->places) {
        free(made);
        return WEIR_ERR_MEMORY;
    }
    pthread_mutex_init(&made->lock, NULL);
    *limits = made;
    return 0;
}

void weir_redis_limits_close(struct weir_redis_limits *limits)
{
    if (!limits)
        return;
    for (uint32_t i = 0; i <= limits->mask; i++)
        free(limits->places[i]);
    free(limits->places);
    pthread_mutex_destroy(&limits->lock);
    free(limits);
}

static bool same_name(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

/* Compiled limits are equal bytes when their specs are equal (weir/limit.h), but for the id. */
static bool same_spec(const struct weir_limit_spec *a, const struct weir_limit_spec *b)
{
    return a->algorithm == b->algorithm && a->rate == b->rate && a->window_ns == b->window_ns &&
           a->burst == b->burst;
}

/* Where a spec is under that name, or where it would go. */
static struct made **limits_place(const struct weir_redis_limits *limits,
                                  const struct weir_limit_spec *spec, const char *name)
{
    uint64_t mix = (spec->rate * UINT64_C(0x9e3779b97f4a7c15)) ^
                   (spec->window_ns * UINT64_C(0xc2b2ae3d27d4eb4f)) ^
                   ((spec->burst + spec->algorithm) * UINT64_C(0x165667b19e3779f9));
    uint32_t at = (uint32_t)(mix >> 32);
    for (;; at++) {
        struct made **place = &limits->places[at & limits->mask];
        if (!*place ||
            (same_spec(&(*place)->limit.spec, spec) && same_name((*place)->limit.name, name)))
            return place;
    }
}

static int limits_add(struct weir_redis_limits *limits, struct weir_store *store,
                      struct weir_store *local, const struct weir_limit *compiled,
                      struct made **place, struct weir_reason *reason)
{
    if (limits->count == limits->max)
        return WEIR_ERR_FULL;
    struct made *made = malloc(sizeof *made);
    if (!made)
        return WEIR_ERR_MEMORY;
    made->limit = *compiled;
    if (local && limits->nodes > 1) {
        weir_limit_divide(compiled, limits->nodes, &made->part);
        made->limit.local = &made->part;
    }
    int err = WEIR_ERR_FULL;
    if (weir_limit_room_for(&limits->room, made->limit.local ? made->limit.local : &made->limit))
        err = weir_store_prepare(store, local, &made->limit, reason);
    if (err < 0) {
        free(made);
        return err;
    }
    *place = made;
    limits->count++;
    return 0;
}

int weir_redis_limits_find(struct weir_redis_limits *limits, struct weir_store *store,
                           struct weir_store *local, const struct weir_limit_spec *spec,
                           const char *name, const struct weir_limit **limit,
                           struct weir_reason *reason)
{
    struct weir_limit compiled;
    struct weir_reason unwanted;
    if (!reason)
        reason = &unwanted;
    int err = weir_limit_init(&compiled, spec, reason);
    if (err < 0)
        return err;
    compiled.name = name;
    pthread_mutex_lock(&limits->lock);
    struct made **place = limits_place(limits, &compiled.spec, name);
    if (!*place)
        err = limits_add(limits, store, local, &compiled, place, reason);
    if (err == 0)
        *limit = &(*place)->limit;
    pthread_mutex_unlock(&limits->lock);
    return err;
}

uint32_t weir_redis_limits_count(struct weir_redis_limits *limits)
{
    pthread_mutex_lock(&limits->lock);
    uint32_t count = limits->count;
    pthread_mutex_unlock(&limits->lock);
    return count;
}
