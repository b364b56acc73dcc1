/* SPDX-License-Identifier: Apache-2.0 */
/* see engine_slots.h */
#include "library/engine_slots.h"

#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "table/operate.h"

_Static_assert(sizeof(struct weir_lane) == 128, "a lane has two cache lines of its own");

enum {
    LANE_ABSENT,  /* may be opened */
    LANE_REFUSED, /* could not be opened: the region or the process is out of something */
    LANE_FREE,
    LANE_TAKEN,
};

/* A lane answers at once, so nobody waits for `done`: the caller of run has the decision. */
static void ignore_done(void *context, struct weir_decision *decision)
{
}

static uint64_t lease_seed(void)
{
    uint64_t seed;
    struct timespec now;
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) == (ssize_t)sizeof seed)
        return seed;
    clock_gettime(CLOCK_REALTIME, &now); /* early boot; ids need only differ between lanes */
    return (uint64_t)now.tv_sec << 30 ^ (uint64_t)now.tv_nsec ^ (uint64_t)getpid() << 40;
}

static void close_stores(struct weir_lane *lane)
{
    free(lane->map);
    if (lane->local)
        lane->local->ops->close(lane->local);
    lane->store->ops->close(lane->store);
}

/* --- Counting --------------------------------------------------------------------------------- */

static struct weir_counts *find_counts(void *context, struct weir_bytes name)
{
    const struct weir_lane *lane = context;
    return lane->edge ? weir_edge_limit(lane->edge, name.data, name.size) : NULL;
}

/* Under `opening`. A lane that finds no slot counts nowhere. */
static void lane_take_slot(struct weir_lane *lane, const struct weir_engine_slots *lanes)
{
    lane->edge = lanes->edge ? weir_edge_take(lanes->edge) : NULL;
    lane->results = lane->edge ? weir_edge_results(lane->edge, lanes->front) : NULL;
}

static struct weir_edge *open_edge(const struct weir_engine_slots *lanes, unsigned how)
{
    struct weir_edge *edge;
    struct weir_reason reason;
    if (!lanes->state_file)
        return NULL;
    return weir_edge_open(&edge, lanes->state_file, how, &reason) == 0 ? edge : NULL;
}

static void take_lane(struct weir_lane *lane);

void weir_engine_slots_renew_edge(struct weir_engine_slots *lanes)
{
    pthread_mutex_lock(&lanes->opening);
    bool same = lanes->edge && weir_edge_is_current(lanes->edge);
    struct weir_edge *edge = same ? NULL : open_edge(lanes, 0);
    if (edge) {
        struct weir_edge *before = lanes->edge;
        lanes->edge = edge;
        for (uint32_t i = 0; i < lanes->count; i++) {
            struct weir_lane *lane = &lanes->lanes[i];
            if (atomic_load_explicit(&lane->state, memory_order_relaxed) < LANE_FREE)
                continue;
            take_lane(lane);
            lane_take_slot(lane, lanes);
            weir_engine_renew_counts(lane->engine);
            weir_engine_slots_leave(lane);
        }
        weir_edge_close(before); /* no lane counts in it any more */
    }
    pthread_mutex_unlock(&lanes->opening);
}

void weir_engine_slots_set_front(struct weir_engine_slots *lanes, enum weir_edge_front front)
{
    pthread_mutex_lock(&lanes->opening);
    lanes->front = front;
    for (uint32_t i = 0; i < lanes->count; i++) {
        struct weir_lane *lane = &lanes->lanes[i];
        if (atomic_load_explicit(&lane->state, memory_order_relaxed) < LANE_FREE)
            continue;
        take_lane(lane);
        if (lane->edge)
            lane->results = weir_edge_results(lane->edge, front);
        weir_engine_slots_leave(lane);
    }
    pthread_mutex_unlock(&lanes->opening);
}

/* --- Lanes ------------------------------------------------------------------------------------ */

/* Which rules keep standing is known to the engine, so this may fail without harm: there is no map
 * then, until it is there. */
static void lane_open_standing(struct weir_lane *lane, const struct weir_engine_slots *lanes)
{
    struct weir_reason reason;
    weir_engine_set_standing(lane->engine, lanes->lists);
    int err = weir_standing_reader_open(&lane->standing, lanes->rules,
                                        weir_table_standing(lanes->table), &reason);
    (void)err;
    if (lane->standing.map)
        weir_engine_set_standing(lane->engine, lane->standing.map);
    weir_engine_miss_standing(lane->engine, lane->standing.missing);
}

/* Under `opening`. Leaves the lane taken. */
static int lane_open(struct weir_engine_slots *lanes, struct weir_lane *lane)
{
    lane->map = calloc(1, sizeof *lane->map);
    if (!lane->map)
        return WEIR_ERR_MEMORY;
    int err = weir_store_embedded_open(&lane->store, lanes->table);
    if (err < 0) {
        free(lane->map);
        return err;
    }
    lane->local = NULL;
    lane->generation = 1;
    if (lanes->spare)
        err = weir_store_spare_open(&lane->local, lanes->spare);
    if (err < 0) {
        close_stores(lane);
        return err;
    }
    lane_take_slot(lane, lanes);
    struct weir_engine_options options = {
        .store = lane->store,
        .local = lane->local,
        .rules = lanes->rules,
        .secret = weir_table_secret(lanes->table),
        .decisions = 1,
        .lease_seed = lease_seed(),
        .lease_owner =
            lanes->own_leases ? weir_table_lease_owner(weir_store_embedded_owner(lane->store)) : 0,
        .done = ignore_done,
        .strike = weir_library_struck,
        .strike_context = lanes->strikes,
        .counts = find_counts,
        .counts_context = lane,
        .clock = lanes->clock,
        .clock_context = lanes->clock_context,
    };
    err = weir_engine_open(&lane->engine, &options);
    if (err < 0) {
        close_stores(lane);
        return err;
    }
    lane_open_standing(lane, lanes);
    atomic_store_explicit(&lane->state, LANE_TAKEN, memory_order_relaxed);
    return 0;
}

static uint32_t choose_count(uint32_t wanted)
{
    long count = wanted != 0 ? (long)wanted : sysconf(_SC_NPROCESSORS_CONF);
    return count < 1 ? 1 : count > WEIR_LANES_MAX ? WEIR_LANES_MAX : (uint32_t)count;
}

int weir_engine_slots_open(struct weir_engine_slots *lanes,
                           const struct weir_engine_slots_options *options)
{
    memset(lanes, 0, sizeof *lanes);
    lanes->count = choose_count(options->count);
    lanes->own_leases = options->own_leases;
    lanes->table = options->table;
    lanes->spare = options->spare;
    lanes->strikes = options->strikes;
    lanes->state_file = options->state_file;
    lanes->clock = options->clock;
    lanes->clock_context = options->clock_context;
    lanes->edge = open_edge(lanes, WEIR_EDGE_WAIT);
    lanes->rules = options->rules;
    lanes->lists = options->lists;
    int err = lane_open(lanes, &lanes->lanes[0]);
    if (err < 0) {
        weir_edge_close(lanes->edge);
        return err;
    }
    weir_engine_slots_leave(&lanes->lanes[0]);
    pthread_mutex_init(&lanes->opening, NULL);
    weir_rules_ref(lanes->rules);
    return 0;
}

void weir_engine_slots_close(struct weir_engine_slots *lanes)
{
    for (uint32_t i = 0; i < lanes->count; i++) {
        if (atomic_load(&lanes->lanes[i].state) < LANE_FREE)
            continue;
        weir_engine_close(lanes->lanes[i].engine);
        weir_standing_reader_close(&lanes->lanes[i].standing);
        close_stores(&lanes->lanes[i]);
    }
    weir_edge_close(lanes->edge);
    weir_rules_unref(lanes->rules);
    weir_standing_close(lanes->lists);
    pthread_mutex_destroy(&lanes->opening);
}

static bool take_free(struct weir_lane *lane)
{
    int expected = LANE_FREE;
    return atomic_load_explicit(&lane->state, memory_order_relaxed) == LANE_FREE &&
           atomic_compare_exchange_strong_explicit(&lane->state, &expected, LANE_TAKEN,
                                                   memory_order_acquire, memory_order_relaxed);
}

/* Waits for the call that has it. */
static void take_lane(struct weir_lane *lane)
{
    while (!take_free(lane))
        sched_yield();
}

static bool take_absent(struct weir_engine_slots *lanes, struct weir_lane *lane)
{
    bool taken = false;
    if (atomic_load_explicit(&lane->state, memory_order_relaxed) != LANE_ABSENT)
        return false;
    pthread_mutex_lock(&lanes->opening);
    if (atomic_load_explicit(&lane->state, memory_order_relaxed) == LANE_ABSENT) {
        taken = lane_open(lanes, lane) == 0;
        if (!taken)
            atomic_store_explicit(&lane->state, LANE_REFUSED, memory_order_relaxed);
    }
    pthread_mutex_unlock(&lanes->opening);
    return taken;
}

struct weir_lane *weir_engine_slots_enter(struct weir_engine_slots *lanes)
{
    for (;;) {
        int processor = lanes->count > 1 ? sched_getcpu() : 0;
        uint32_t home = processor < 0 ? 0 : (uint32_t)processor % lanes->count;
        for (uint32_t i = 0; i < lanes->count; i++) {
            struct weir_lane *lane = &lanes->lanes[(home + i) % lanes->count];
            if (take_free(lane) || take_absent(lanes, lane))
                return lane;
        }
        sched_yield();
    }
}

void weir_engine_slots_leave(struct weir_lane *lane)
{
    atomic_store_explicit(&lane->state, LANE_FREE, memory_order_release);
}

int weir_engine_slots_set_rules(struct weir_engine_slots *lanes, struct weir_rules *rules,
                                struct weir_standing *lists)
{
    struct weir_standing *before;
    int result = 0;
    pthread_mutex_lock(&lanes->opening);
    weir_rules_unref(lanes->rules);
    lanes->rules = weir_rules_ref(rules);
    before = lanes->lists;
    lanes->lists = lists;
    for (uint32_t i = 0; i < lanes->count; i++) {
        struct weir_lane *lane = &lanes->lanes[i];
        if (atomic_load_explicit(&lane->state, memory_order_relaxed) < LANE_FREE)
            continue;
        take_lane(lane);
        if (weir_engine_set_rules(lane->engine, rules) < 0)
            result = WEIR_ERR_MEMORY;
        lane->generation++;
        lane_open_standing(lane, lanes);
        weir_engine_slots_leave(lane);
    }
    weir_standing_close(before); /* no lane reads it any more */
    pthread_mutex_unlock(&lanes->opening);
    return result;
}
