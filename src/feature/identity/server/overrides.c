/* SPDX-License-Identifier: Apache-2.0 */
/* see overrides.h */
#include "feature/identity/server/overrides.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "rules/division.h"
#include "server/daemon/limit_room.h"

struct calendar {
    struct calendar *next;
    uint32_t count;
    uint64_t bounds[];
};

/* The limits of one override; limits, parts, states and names are in its block. */
struct kept {
    struct kept *next; /* in its bucket */
    uint64_t hash;
    uint32_t count;
    struct weir_limit *limits, *parts;
    uint32_t *states;
};

#define BUCKETS 1024 /* four of them in each when there are WEIR_OVERRIDES_KINDS */

struct weir_overrides {
    pthread_mutex_t lock;
    struct weir_limit_room room;
    uint32_t nodes, count, calendar_count;
    struct calendar *calendars;
    struct kept *buckets[BUCKETS];
};

int weir_overrides_open(struct weir_overrides **overrides, struct weir_table *table, uint32_t nodes)
{
    struct weir_table_stats stats = {.params_max = 0};
    struct weir_overrides *made = calloc(1, sizeof *made);
    if (!made)
        return WEIR_ERR_MEMORY;
    if (table)
        weir_table_stats(table, 0, &stats);
    made->room =
        (struct weir_limit_room){.table = table, .max = (uint32_t)(stats.params_max / 4 * 3)};
    made->nodes = nodes;
    pthread_mutex_init(&made->lock, NULL);
    *overrides = made;
    return 0;
}

void weir_overrides_close(struct weir_overrides *overrides)
{
    if (!overrides)
        return;
    for (uint32_t i = 0; i < BUCKETS; i++) {
        for (struct kept *next, *at = overrides->buckets[i]; at; at = next) {
            next = at->next;
            free(at);
        }
    }
    for (struct calendar *next, *at = overrides->calendars; at; at = next) {
        next = at->next;
        free(at);
    }
    pthread_mutex_destroy(&overrides->lock);
    free(overrides);
}

/* --- Comparing -------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

static uint64_t hash_of(const struct weir_override *override)
{
    uint64_t hash = override->count;
    for (uint32_t i = 0; i < override->count; i++) {
        const struct weir_limit_spec *spec = &override->limits[i].spec;
        hash = mix(hash, spec->rate);
        hash = mix(hash, spec->window_ns);
        hash = mix(hash, spec->burst + ((uint64_t)spec->algorithm << 48));
        hash = mix(hash, spec->calendar + spec->rollover);
        for (const char *at = override->limits[i].name; *at; at++)
            hash = mix(hash, (unsigned char)*at);
    }
    return hash;
}

static bool same_bounds(const uint64_t *a, const uint64_t *b, uint32_t count)
{
    return a == b || memcmp(a, b, count * sizeof *a) == 0;
}

static bool same_spec(const struct weir_limit_spec *a, const struct weir_limit_spec *b)
{
    return a->algorithm == b->algorithm && a->rate == b->rate && a->window_ns == b->window_ns &&
           a->burst == b->burst && a->segments == b->segments && a->strict == b->strict &&
           a->rollover == b->rollover && a->calendar == b->calendar &&
           a->bound_count == b->bound_count && same_bounds(a->bounds, b->bounds, a->bound_count);
}

static bool is_same(const struct kept *kept, const struct weir_override *override)
{
    if (kept->count != override->count)
        return false;
    for (uint32_t i = 0; i < kept->count; i++)
        if (kept->states[i] != override->states[i] ||
            strcmp(kept->limits[i].name, override->limits[i].name) != 0 ||
            !same_spec(&kept->limits[i].spec, &override->limits[i].spec))
            return false;
    return true;
}

/* --- Keeping ---------------------------------------------------------------------------------- */

/* The bounds of a quota, for ever; NULL: there is no room. */
static const uint64_t *keep_bounds(struct weir_overrides *overrides, const uint64_t *bounds,
                                   uint32_t count)
{
    for (struct calendar *at = overrides->calendars; at; at = at->next)
        if (at->count == count && same_bounds(at->bounds, bounds, count))
            return at->bounds;
    if (overrides->calendar_count == WEIR_OVERRIDES_CALENDARS)
        return NULL;
    struct calendar *made = malloc(sizeof *made + count * sizeof *bounds);
    if (!made)
        return NULL;
    made->count = count;
    memcpy(made->bounds, bounds, count * sizeof *bounds);
    made->next = overrides->calendars;
    overrides->calendars = made;
    overrides->calendar_count++;
    return made->bounds;
}

/* A copy that points at nothing of the rules, except calendars. NULL: no memory. */
static struct kept *copy_of(const struct weir_override *override)
{
    uint32_t count = override->count;
    size_t names = 0;
    for (uint32_t i = 0; i < count; i++)
        names += strlen(override->limits[i].name) + 1;
    struct kept *kept = malloc(sizeof *kept + 2 * count * sizeof *kept->limits +
                               count * sizeof *kept->states + names);
    if (!kept)
        return NULL;
    kept->count = count;
    kept->limits = (struct weir_limit *)(void *)(kept + 1);
    kept->parts = kept->limits + count;
    kept->states = (uint32_t *)(void *)(kept->parts + count);
    char *at = (char *)(kept->states + count);
    memcpy(kept->limits, override->limits, count * sizeof *kept->limits);
    memcpy(kept->states, override->states, count * sizeof *kept->states);
    for (uint32_t i = 0; i < count; i++) {
        size_t size = strlen(override->limits[i].name) + 1;
        kept->limits[i].name = memcpy(at, override->limits[i].name, size);
        at += size;
    }
    return kept;
}

static int keep_limit(struct weir_overrides *overrides, struct weir_store *store,
                      struct weir_store *local, struct kept *kept, uint32_t i,
                      struct weir_reason *reason)
{
    struct weir_limit *limit = &kept->limits[i];
    limit->local = NULL;
    limit->id = 0;
    if (limit->spec.bounds)
        limit->spec.bounds = keep_bounds(overrides, limit->spec.bounds, limit->spec.bound_count);
    if (limit->spec.bound_count && !limit->spec.bounds)
        return WEIR_ERR_FULL;
    if (local && overrides->nodes > 1) {
        weir_limit_divide(limit, overrides->nodes, &kept->parts[i]);
        limit->local = &kept->parts[i];
    }
    if (!weir_limit_room_for(&overrides->room, limit->local ? limit->local : limit))
        return WEIR_ERR_FULL;
    return weir_store_prepare(store, local, limit, reason);
}

static int keep(struct weir_overrides *overrides, struct weir_store *store,
                struct weir_store *local, const struct weir_override *override, uint64_t hash,
                struct kept **out, struct weir_reason *reason)
{
    if (overrides->count >= WEIR_OVERRIDES_KINDS)
        return WEIR_ERR_FULL;
    struct kept *kept = copy_of(override);
    if (!kept)
        return WEIR_ERR_MEMORY;
    int err = 0;
    for (uint32_t i = 0; i < kept->count && err == 0; i++)
        err = keep_limit(overrides, store, local, kept, i, reason);
    if (err < 0) {
        free(kept);
        return err;
    }
    kept->hash = hash;
    kept->next = overrides->buckets[hash % BUCKETS];
    overrides->buckets[hash % BUCKETS] = kept;
    overrides->count++;
    *out = kept;
    return 0;
}

int weir_overrides_find(struct weir_overrides *overrides, struct weir_store *store,
                        struct weir_store *local, const struct weir_rules *rules,
                        struct weir_bytes limit, struct weir_bytes text,
                        struct weir_override *override, struct weir_reason *reason)
{
    struct weir_override *made;
    int err = weir_rules_override(rules, limit, text, &made, reason);
    if (err < 0)
        return err;
    *override = (struct weir_override){.rule = made->rule};
    if (made->count > 0) {
        uint64_t hash = hash_of(made);
        pthread_mutex_lock(&overrides->lock);
        struct kept *kept = overrides->buckets[hash % BUCKETS];
        while (kept && !(kept->hash == hash && is_same(kept, made)))
            kept = kept->next;
        if (!kept)
            err = keep(overrides, store, local, made, hash, &kept, reason);
        pthread_mutex_unlock(&overrides->lock);
        if (err == 0) {
            override->count = kept->count;
            override->limits = kept->limits;
            override->states = kept->states;
        }
    }
    free(made);
    return err;
}

uint32_t weir_overrides_count(struct weir_overrides *overrides)
{
    pthread_mutex_lock(&overrides->lock);
    uint32_t count = overrides->count;
    pthread_mutex_unlock(&overrides->lock);
    return count;
}
