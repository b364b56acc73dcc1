/* SPDX-License-Identifier: Apache-2.0 */
/* see adhoc_limits.h */
#include "server/adhoc/adhoc_limits.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "rules/division.h"
#include "server/daemon/limit_room.h"

#define EPOCH_NS UINT64_C(15000000000)
#define EPOCHS_UNUSED 5 /* 60 s and the rest of an epoch: longer than any store's deadline */

struct made {
    uint64_t epoch; /* in which it was looked up last */
    struct weir_limit limit;
    struct weir_limit part; /* limit.local, where that is not NULL */
};

struct weir_adhoc_limits {
    pthread_mutex_t lock;
    uint32_t max, nodes;
    struct weir_map made; /* of struct made */
    struct weir_table *table;
    struct weir_limit_room room;
    _Atomic uint64_t epoch;
};

static uint32_t list_size(struct weir_table *table)
{
    struct weir_table_stats stats;
    weir_table_stats(table, 0, &stats);
    return (uint32_t)stats.params_max;
}

int weir_adhoc_limits_open(struct weir_adhoc_limits **limits, uint32_t max,
                           struct weir_table *table, uint32_t nodes)
{
    struct weir_adhoc_limits *made = calloc(1, sizeof *made);
    if (!made)
        return WEIR_ERR_MEMORY;
    made->max = max;
    made->table = table;
    /* The last eighth of the list is for rules. */
    made->room =
        (struct weir_limit_room){.table = table, .max = table ? list_size(table) / 8 * 7 : 0};
    made->nodes = nodes;
    if (!weir_map_open(&made->made, max)) {
        free(made);
        return WEIR_ERR_MEMORY;
    }
    pthread_mutex_init(&made->lock, NULL);
    *limits = made;
    return 0;
}

void weir_adhoc_limits_close(struct weir_adhoc_limits *limits)
{
    if (!limits)
        return;
    uint32_t at = 0;
    for (void *made; (made = weir_map_next(&limits->made, &at));)
        free(made);
    weir_map_close(&limits->made);
    pthread_mutex_destroy(&limits->lock);
    free(limits);
}

static bool same_name(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

/* Compiled limits are equal bytes when their specs are equal (weir/limit.h), except for the id. */
static bool same_spec(const struct weir_limit_spec *a, const struct weir_limit_spec *b)
{
    return a->algorithm == b->algorithm && a->rate == b->rate && a->window_ns == b->window_ns &&
           a->burst == b->burst && a->segments == b->segments && a->strict == b->strict &&
           a->rollover == b->rollover && a->calendar == b->calendar;
}

static uint64_t spec_hash(const struct weir_limit_spec *spec)
{
    uint64_t mix = (spec->rate * UINT64_C(0x9e3779b97f4a7c15)) ^
                   (spec->window_ns * UINT64_C(0xc2b2ae3d27d4eb4f)) ^
                   ((spec->burst + spec->algorithm) * UINT64_C(0x165667b19e3779f9));
    return mix >> 32;
}

static uint64_t made_hash(const void *item)
{
    return spec_hash(&((const struct made *)item)->limit.spec);
}

/* What a limit is known by. */
struct known_by {
    const struct weir_limit_spec *spec;
    const char *name;
};

static bool made_is(const void *item, const void *key)
{
    const struct weir_limit *limit = &((const struct made *)item)->limit;
    const struct known_by *by = key;
    return same_spec(&limit->spec, by->spec) && same_name(limit->name, by->name);
}

static const struct weir_map_kind made_kind = {made_hash, made_is};

/* Both of one that a table knows twice: whole, and as this node's part. */
static void unpin(struct weir_table *table, const struct weir_limit *limit)
{
    if (!table)
        return;
    weir_table_unpin(table, limit->id);
    if (limit->local && limit->local->id != limit->id)
        weir_table_unpin(table, limit->local->id);
}

static bool is_used(void *context, void *item)
{
    struct weir_adhoc_limits *limits = context;
    struct made *made = item;
    uint64_t epoch = atomic_load_explicit(&limits->epoch, memory_order_relaxed);
    if (made->epoch == 0) /* from before the first tick */
        made->epoch = epoch;
    if (made->epoch + EPOCHS_UNUSED > epoch)
        return true;
    unpin(limits->table, &made->limit);
    free(made);
    return false;
}

static int limits_add(struct weir_adhoc_limits *limits, struct weir_store *store,
                      struct weir_store *local, const struct weir_limit *compiled,
                      struct made **added, struct weir_reason *reason)
{
    if (limits->made.count == limits->max)
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
    if (err == 0 && !weir_map_add(&limits->made, &made_kind, made))
        err = WEIR_ERR_MEMORY;
    if (err < 0) {
        free(made);
        return err;
    }
    *added = made;
    return 0;
}

int weir_adhoc_limits_find(struct weir_adhoc_limits *limits, struct weir_store *store,
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
    const struct known_by key = {&compiled.spec, name};
    struct made *made = weir_map_find(&limits->made, &made_kind, spec_hash(&compiled.spec), &key);
    if (!made)
        err = limits_add(limits, store, local, &compiled, &made, reason);
    if (err == WEIR_ERR_FULL) {
        weir_map_filter(&limits->made, &made_kind, is_used, limits);
        err = limits_add(limits, store, local, &compiled, &made, reason);
    }
    if (err == 0) {
        made->epoch = atomic_load_explicit(&limits->epoch, memory_order_relaxed);
        *limit = &made->limit;
    }
    pthread_mutex_unlock(&limits->lock);
    return err;
}

void weir_adhoc_limits_tick(struct weir_adhoc_limits *limits, uint64_t now_ns)
{
    atomic_store_explicit(&limits->epoch, now_ns / EPOCH_NS, memory_order_relaxed);
}

uint64_t weir_adhoc_limits_epoch(const struct weir_adhoc_limits *limits)
{
    return atomic_load_explicit(&limits->epoch, memory_order_relaxed);
}

uint32_t weir_adhoc_limits_count(struct weir_adhoc_limits *limits)
{
    pthread_mutex_lock(&limits->lock);
    uint32_t count = limits->made.count;
    pthread_mutex_unlock(&limits->lock);
    return count;
}
