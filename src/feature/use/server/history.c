/* SPDX-License-Identifier: Apache-2.0 */
/* see history.h */
#include "feature/use/server/history.h"

#include <stdlib.h>
#include <string.h>

#include "feature/use/server/edge_sums.h"
#include "rules/charge/top_up.h"
#include "rules/counter.h"
#include "rules/follow.h"
#include "server/daemon/daemon.h"
#include "server/stores/daemon.h"
#include "server/stores/shared_store.h"
#include "store/redis/redis.h"

#define S UINT64_C(1000000000)
#define DAY_S 86400

const char *const weir_use_field_names[WEIR_USE_WHOLE_FIELDS] = {
    "allowed",
    "denied",
    "delayed",
    "cost",
    "shadow_denied",
    "distinct_keys",
    "edge_allowed",
    "edge_denied",
    "edge_shadow_denied",
    "requests",
    "http",
    "grpc",
    "redis",
    "nginx",
    "library",
    "refused_limit",
    "refused_standing",
    "refused_unknown",
    "refused_challenge",
    "refused_store",
    "refused_unreadable",
    "latency_p50_us",
    "latency_p99_us",
    "store_p50_us",
    "store_p99_us",
};
_Static_assert(WEIR_CAUSES == 6, "each cause has a series");

#define LIMIT_LEVELS (1u << WEIR_USE_DISTINCT)
#define WHOLE_LEVELS                                                                               \
    (LIMIT_LEVELS | 1u << WEIR_USE_TURN_P50_US | 1u << WEIR_USE_TURN_P99_US |                      \
     1u << WEIR_USE_STORE_P50_US | 1u << WEIR_USE_STORE_P99_US)

int weir_use_history_open(struct weir_use_service *use)
{
    use->turn_buckets = calloc(WEIR_TURN_BUCKETS + 1, sizeof *use->turn_buckets);
    use->store_buckets = calloc(REDIS_LATENCY_BUCKETS + 1, sizeof *use->store_buckets);
    use->sets[0] = calloc(1, sizeof *use->sets[0]);
    use->sets[1] = calloc(1, sizeof *use->sets[1]);
    use->minutes = calloc(WEIR_DISTINCT_LIMITS, sizeof *use->minutes);
    if (!use->turn_buckets || !use->store_buckets || !use->sets[0] || !use->sets[1] ||
        !use->minutes)
        return WEIR_ERR_MEMORY;
    atomic_store(&use->writing, use->sets[0]);
    return weir_series_open(&use->whole, WEIR_USE_WHOLE_FIELDS, WHOLE_LEVELS);
}

void weir_use_history_close(struct weir_use_service *use)
{
    for (uint32_t i = 0; i < use->limit_count; i++)
        weir_series_close(use->limits[i].series);
    rules_string_map_free(&use->names);
    weir_series_close(use->whole);
    free(use->limits);
    free(use->turn_buckets);
    free(use->store_buckets);
    free(use->sets[0]);
    free(use->sets[1]);
    free(use->minutes);
}

/* --- Limits ----------------------------------------------------------------------------------- */

struct weir_use_limit *weir_use_find(struct weir_use_service *use, struct weir_bytes name)
{
    uint32_t i = rules_string_map_find(&use->names, WEIR_USE_NAMES,
                                       rules_text_hash(name.data, name.size), name.data, name.size);
    return i == RULES_NONE ? NULL : &use->limits[i];
}

/* Says which keys of a limit the workers count. */
static void count_keys(struct weir_use_service *use, const struct weir_use_limit *limit,
                       uint16_t below)
{
    for (unsigned i = 0; i < use->daemon->worker_count; i++)
        if (use->daemon->workers[i])
            weir_engine_count_keys(use->daemon->workers[i]->engine, limit->name,
                                   strlen(limit->name), limit->distinct, below);
}

void weir_use_limits_free(struct weir_use_limits *limits)
{
    if (!limits)
        return;
    rules_string_map_free(&limits->names);
    free(limits->list);
    free(limits);
}

/* False: no memory. A limit without that name (NULL) has no place among them. */
static bool add_edge_name(struct weir_use_limits *limits, uint32_t names, uint64_t *hash,
                          const char *name, uint32_t limit)
{
    if (!name)
        return true;
    *hash = weir_edge_name(name, strlen(name));
    return rules_string_map_add(&limits->names, names, (const char *)hash, sizeof *hash, limit);
}

int weir_use_limits_open(struct weir_use_limits **out, const struct weir_rules *rules)
{
    uint32_t count = weir_rules_count(rules);
    struct weir_use_limits *limits = calloc(1, sizeof *limits);
    if (limits)
        limits->list = calloc(count + 1, sizeof *limits->list);
    bool fine = limits && limits->list;
    for (uint32_t i = 0; i < count && fine; i++) {
        struct weir_use_limit *limit = &limits->list[i];
        const char *whole = weir_rules_name(rules, i);
        size_t size = strnlen(whole, WEIR_HEAVY_NAME_MAX);
        memcpy(limit->name, whole, size);
        limit->distinct = WEIR_DISTINCT_LIMITS;
        fine = rules_string_map_add(&limits->names, WEIR_USE_NAMES, limit->name, size, i) &&
               add_edge_name(limits, WEIR_USE_NAMES_OF_EDGE, &limit->edge_name, whole, i) &&
               add_edge_name(limits, WEIR_USE_TOP_UPS_OF_EDGE, &limit->edge_top_up_name,
                             weir_rules_top_up_name(rules, i), i);
    }
    if (!fine) {
        weir_use_limits_free(limits);
        return WEIR_ERR_MEMORY;
    }
    limits->count = count;
    *out = limits;
    return 0;
}

/* What is known of the limit of that name, which moves to the new one. */
static void limit_continue(struct weir_use_limit *limit, struct weir_use_limit *old)
{
    struct weir_use_limit named = *limit;
    *limit = *old;
    memcpy(limit->name, named.name, sizeof limit->name);
    limit->edge_name = named.edge_name;
    limit->edge_top_up_name = named.edge_top_up_name;
    old->series = NULL;
    old->distinct = WEIR_DISTINCT_LIMITS;
}

static void limit_end(struct weir_use_service *use, struct weir_use_limit *limit)
{
    use->series_count -= limit->series != NULL;
    weir_series_close(limit->series);
    if (limit->distinct < WEIR_DISTINCT_LIMITS)
        use->numbers[limit->distinct] = false;
}

static void tick_end(struct weir_use_service *use);

void weir_use_history_take(struct weir_use_service *use, struct weir_use_limits *limits)
{
    if (use->ticking.on)
        tick_end(use); /* what it has not reached is counted by the next one */
    const struct weir_rules *rules = use->daemon->rules;
    const uint32_t *follows = use->rules ? weir_rules_followed(rules, use->rules) : NULL;
    for (uint32_t i = 0; i < limits->count && use->limits; i++) {
        struct weir_use_limit *limit = &limits->list[i], *old = NULL;
        if (!follows)
            old = weir_use_find(use, (struct weir_bytes){limit->name, strlen(limit->name)});
        else if (follows[i] != RULES_NONE)
            old = &use->limits[follows[i]];
        if (old)
            limit_continue(limit, old);
        if (limit->distinct < WEIR_DISTINCT_LIMITS)
            use->number_limit[limit->distinct] = i;
    }
    for (uint32_t i = 0; use->limits && i < use->limit_count; i++)
        limit_end(use, &use->limits[i]);
    rules_string_map_free(&use->names);
    free(use->limits);
    use->limits = limits->list;
    use->limit_count = limits->count;
    use->names = limits->names;
    use->rules = use->daemon->rules;
    use->limits_set++;
    free(limits);
}

/* Gives a limit a counter of keys, where one is free. */
static void take_number(struct weir_use_service *use, struct weir_use_limit *limit)
{
    uint8_t number = 0;
    while (number < WEIR_DISTINCT_LIMITS && use->numbers[number])
        number++;
    limit->distinct = number;
    if (number == WEIR_DISTINCT_LIMITS)
        return;
    use->numbers[number] = true;
    use->number_limit[number] = (uint32_t)(limit - use->limits);
    weir_distinct_clear(&use->minutes[number]);
}

/* The busiest limits, the busiest first. */
struct busiest {
    struct weir_use_limit *list[WEIR_DISTINCT_LIMITS];
    uint32_t count;
};

static void busiest_add(struct busiest *busiest, struct weir_use_limit *limit)
{
    uint32_t at = busiest->count;
    if (at == WEIR_DISTINCT_LIMITS && busiest->list[at - 1]->minute >= limit->minute)
        return;
    if (at == WEIR_DISTINCT_LIMITS)
        at--;
    else
        busiest->count++;
    for (; at > 0 && busiest->list[at - 1]->minute < limit->minute; at--)
        busiest->list[at] = busiest->list[at - 1];
    busiest->list[at] = limit;
}

static bool busiest_has(const struct busiest *busiest, const struct weir_use_limit *limit)
{
    for (uint32_t i = 0; i < busiest->count; i++)
        if (busiest->list[i] == limit)
            return true;
    return false;
}

/* Gives the counters of keys to the busiest limits; those that keep theirs stay as they are. */
static void choose_busiest(struct weir_use_service *use)
{
    struct busiest busiest = {.count = 0};
    for (uint32_t i = 0; i < use->limit_count; i++)
        busiest_add(&busiest, &use->limits[i]);
    for (unsigned n = 0; n < WEIR_DISTINCT_LIMITS; n++) {
        struct weir_use_limit *limit = &use->limits[use->number_limit[n]];
        if (!use->numbers[n] || busiest_has(&busiest, limit))
            continue;
        use->numbers[n] = false;
        count_keys(use, limit, WEIR_DISTINCT_NONE);
        limit->distinct = WEIR_DISTINCT_LIMITS;
    }
    for (uint32_t i = 0; i < busiest.count; i++)
        if (busiest.list[i]->distinct == WEIR_DISTINCT_LIMITS)
            take_number(use, busiest.list[i]);
}

/* The series of a limit that is used; NULL: there is no room. */
static struct weir_series *series_of(struct weir_use_service *use, struct weir_use_limit *limit,
                                     uint64_t now_s)
{
    if (!limit->series && use->series_count == WEIR_USE_SERIES) {
        for (uint32_t i = 0; i < use->limit_count; i++) {
            struct weir_use_limit *other = &use->limits[i];
            if (!other->series || other->used_at_s + DAY_S > now_s)
                continue;
            weir_series_close(other->series);
            other->series = NULL;
            use->series_count--;
            break;
        }
    }
    if (!limit->series && use->series_count < WEIR_USE_SERIES &&
        weir_series_open(&limit->series, WEIR_USE_FIELDS, LIMIT_LEVELS) == 0)
        use->series_count++;
    return limit->series;
}

struct weir_series *weir_use_series_of(struct weir_use_service *use, struct weir_use_limit *limit)
{
    return series_of(use, limit, use->tick_s);
}

/* --- The tick --------------------------------------------------------------------------------- */

/* How much a counter has grown; all of it where it began anew. */
static float growth(uint64_t *before, uint64_t now)
{
    uint64_t grown = now >= *before ? now - *before : now;
    *before = now;
    return (float)grown;
}

static void sum_counters(const struct weir_use_service *use, const struct weir_use_limit *limit,
                         uint64_t counts[WEIR_USE_DISTINCT])
{
    memset(counts, 0, WEIR_USE_DISTINCT * sizeof *counts);
    for (unsigned i = 0; i < use->daemon->worker_count; i++) {
        const struct weir_engine_counters *c = weir_engine_counters_of(
            use->daemon->workers[i]->engine, use->rules, (uint32_t)(limit - use->limits),
            limit->name, strlen(limit->name));
        if (!c)
            continue;
        counts[WEIR_USE_ALLOWED] += weir_counted(&c->counts.allowed);
        counts[WEIR_USE_DENIED] += weir_counted(&c->counts.denied);
        counts[WEIR_USE_SHADOW] += weir_counted(&c->counts.shadow_denied);
        counts[WEIR_USE_DELAYED] += weir_counted(&c->counts.delayed);
        counts[WEIR_USE_COST] += weir_counted(&c->counts.cost);
    }
}

static void tick_limit(struct weir_use_service *use, struct weir_use_limit *limit,
                       const struct weir_distinct_set *keys, uint64_t now_s, float *whole)
{
    uint64_t counts[WEIR_USE_DISTINCT];
    float values[WEIR_USE_FIELDS] = {0};
    sum_counters(use, limit, counts);
    for (unsigned i = 0; i < WEIR_USE_DISTINCT; i++)
        values[i] = growth(&limit->counts[i], counts[i]);
    for (unsigned i = 0; i < WEIR_USE_DISTINCT; i++)
        whole[i] += values[i];
    weir_use_edge_tick_limit(use, limit, values);
    uint64_t requests =
        (uint64_t)(values[WEIR_USE_ALLOWED] + values[WEIR_USE_DENIED] + values[WEIR_USE_SHADOW]);
    uint64_t edge = (uint64_t)(values[WEIR_USE_EDGE_ALLOWED] + values[WEIR_USE_EDGE_DENIED] +
                               values[WEIR_USE_EDGE_SHADOW]);
    limit->minute += requests;
    if (limit->distinct < WEIR_DISTINCT_LIMITS) {
        const struct weir_distinct *of_second = &keys->limits[limit->distinct];
        if (requests > 0)
            values[WEIR_USE_DISTINCT] = (float)weir_distinct_count(of_second);
        weir_distinct_merge(&use->minutes[limit->distinct], of_second);
    }
    if (requests + edge > 0)
        limit->used_at_s = now_s;
    struct weir_series *series = requests + edge > 0 ? series_of(use, limit, now_s) : limit->series;
    if (!series)
        return;
    weir_series_put(series, now_s, values);
    if (requests > 0 && limit->distinct < WEIR_DISTINCT_LIMITS)
        weir_series_set_minute(series, now_s, WEIR_USE_DISTINCT,
                               (float)weir_distinct_count(&use->minutes[limit->distinct]));
}

/* The bound of the bucket that a quantile of what has grown is in; 0: nothing has grown. */
static float quantile(const uint64_t *grown, const uint32_t *bounds, unsigned count, double q)
{
    uint64_t all = 0, seen = 0;
    for (unsigned i = 0; i <= count; i++)
        all += grown[i];
    if (all == 0)
        return 0;
    for (unsigned i = 0; i < count; i++) {
        seen += grown[i];
        if ((double)seen >= q * (double)all)
            return (float)bounds[i];
    }
    return (float)bounds[count - 1];
}

/* Makes `now` what it has grown by since `before`, which becomes `now`. */
static void grow_all(uint64_t *now, uint64_t *before, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        now[i] = (uint64_t)growth(&before[i], now[i]);
}

static void tick_latency(struct weir_use_service *use, float *whole)
{
    const struct weir_daemon *daemon = use->daemon;
    uint64_t turns[WEIR_TURN_BUCKETS + 1] = {0}, calls[REDIS_LATENCY_BUCKETS + 1] = {0};
    for (unsigned i = 0; i < daemon->worker_count; i++)
        for (unsigned b = 0; b <= WEIR_TURN_BUCKETS; b++)
            turns[b] += weir_counted(&daemon->workers[i]->counters.turn_buckets[b]);
    grow_all(turns, use->turn_buckets, WEIR_TURN_BUCKETS + 1);
    whole[WEIR_USE_TURN_P50_US] = quantile(turns, weir_turn_bounds_us, WEIR_TURN_BUCKETS, 0.5);
    whole[WEIR_USE_TURN_P99_US] = quantile(turns, weir_turn_bounds_us, WEIR_TURN_BUCKETS, 0.99);
    if (!weir_daemon_shared(daemon))
        return;
    struct weir_shared_totals totals;
    weir_shared_store_totals(weir_daemon_shared(daemon), &totals);
    for (unsigned b = 0; b <= REDIS_LATENCY_BUCKETS; b++)
        calls[b] = weir_counted(&totals.stats.latency_buckets[b]);
    grow_all(calls, use->store_buckets, REDIS_LATENCY_BUCKETS + 1);
    whole[WEIR_USE_STORE_P50_US] =
        quantile(calls, redis_latency_bounds_us, REDIS_LATENCY_BUCKETS, 0.5);
    whole[WEIR_USE_STORE_P99_US] =
        quantile(calls, redis_latency_bounds_us, REDIS_LATENCY_BUCKETS, 0.99);
}

uint64_t weir_use_refused(const struct weir_use_service *use, enum weir_cause cause)
{
    uint64_t refused = 0;
    for (unsigned i = 0; i < use->daemon->worker_count; i++)
        refused += weir_counted(&use->daemon->workers[i]->counters.denied_by[cause]);
    return refused;
}

static void tick_fronts(struct weir_use_service *use, float *whole)
{
    static const uint8_t kinds[] = {WEIR_LISTENER_HTTP, WEIR_LISTENER_GRPC, WEIR_LISTENER_REDIS};
    uint64_t requests = 0;
    for (unsigned f = 0; f < 3; f++) {
        uint64_t of_front = 0;
        for (unsigned i = 0; i < use->daemon->worker_count; i++)
            of_front += weir_counted(&use->daemon->workers[i]->counters.by_front[kinds[f]]);
        requests += of_front;
        whole[WEIR_USE_HTTP + f] = growth(&use->whole_counts[WEIR_USE_HTTP + f], of_front);
    }
    whole[WEIR_USE_REQUESTS] = growth(&use->whole_counts[WEIR_USE_REQUESTS], requests);
    whole[WEIR_USE_DENIED] = 0; /* of requests, not of limits */
    for (unsigned cause = 0; cause < WEIR_CAUSES; cause++) {
        uint64_t refused = weir_use_refused(use, (enum weir_cause)cause);
        unsigned field = WEIR_USE_REFUSED + cause;
        whole[field] = growth(&use->whole_counts[field], refused);
        whole[WEIR_USE_DENIED] += whole[field];
    }
    whole[WEIR_USE_ALLOWED] = whole[WEIR_USE_REQUESTS] > whole[WEIR_USE_DENIED]
                                  ? whole[WEIR_USE_REQUESTS] - whole[WEIR_USE_DENIED]
                                  : 0;
}

/* The set that the workers have left a second ago: each has had a turn since, or writes a word into
 * it that the next second reads. Into the other one they count all keys; again each second, since a
 * worker may have taken the rules since the last one. */
static struct weir_distinct_set *swap_sets(struct weir_use_service *use)
{
    for (unsigned n = 0; n < WEIR_DISTINCT_LIMITS; n++)
        if (use->numbers[n])
            count_keys(use, &use->limits[use->number_limit[n]], WEIR_DISTINCT_ALL);
    struct weir_distinct_set *written = atomic_load(&use->writing);
    struct weir_distinct_set *other = written == use->sets[0] ? use->sets[1] : use->sets[0];
    for (unsigned i = 0; i < WEIR_DISTINCT_LIMITS; i++)
        if (use->numbers[i])
            weir_distinct_clear(&other->limits[i]);
    atomic_store(&use->writing, other);
    return written;
}

/* What comes after all limits. */
static void tick_end(struct weir_use_service *use)
{
    struct weir_use_ticking *ticking = &use->ticking;
    tick_fronts(use, ticking->whole);
    tick_latency(use, ticking->whole);
    weir_series_put(use->whole, ticking->now_s, ticking->whole);
    ticking->on = false;
}

bool weir_use_history_step(struct weir_use_service *use)
{
    struct weir_use_ticking *ticking = &use->ticking;
    if (!ticking->on)
        return false;
    for (uint32_t n = 0; n < WEIR_USE_PIECE && ticking->next < use->limit_count; n++) {
        struct weir_use_limit *limit = &use->limits[ticking->next++];
        if (ticking->minute)
            limit->minute /= 2;
        tick_limit(use, limit, ticking->keys, ticking->now_s, ticking->whole);
    }
    if (ticking->next == use->limit_count)
        tick_end(use);
    return ticking->on;
}

static void tick_finish(struct weir_use_service *use)
{
    while (weir_use_history_step(use))
        ;
}

/* A single second without a tick is no gap: the timer is late, and the next second has its numbers,
 * too. */
static void note_gap(struct weir_use_service *use, uint64_t now_s)
{
    uint64_t next_s = weir_series_last(use->whole) + 1;
    if (next_s > 1 && now_s > next_s + 1)
        use->gaps[use->gap_count++ % WEIR_USE_GAPS] = (struct weir_use_gap){next_s, now_s};
}

void weir_use_history_tick(struct weir_use_service *use, uint64_t now_ns)
{
    uint64_t now_s = now_ns / S;
    tick_finish(use);
    note_gap(use, now_s);
    use->ticking = (struct weir_use_ticking){
        .on = true, .minute = now_s / 60 != use->tick_s / 60, .now_s = now_s};
    if (use->ticking.minute) {
        choose_busiest(use);
        for (unsigned i = 0; i < WEIR_DISTINCT_LIMITS; i++)
            weir_distinct_clear(&use->minutes[i]);
    }
    use->ticking.keys = swap_sets(use);
    weir_use_edge_tick(use, use->ticking.whole);
    (void)weir_use_history_step(use);
}

void weir_use_history_end(struct weir_use_service *use, uint64_t now_ns)
{
    uint64_t next_s = use->tick_s + 1; /* the last second has its numbers already */
    weir_use_history_tick(use, now_ns / S > next_s ? now_ns : next_s * S);
    tick_finish(use);
}

void weir_use_history_skip(struct weir_use_service *use)
{
    const struct weir_distinct_set *keys = atomic_load(&use->writing);
    for (unsigned n = 0; n < WEIR_DISTINCT_LIMITS; n++) {
        uint16_t below =
            use->numbers[n] ? weir_distinct_below(&keys->limits[n]) : WEIR_DISTINCT_ALL;
        if (below < WEIR_DISTINCT_ALL)
            count_keys(use, &use->limits[use->number_limit[n]], below);
    }
}
