/* SPDX-License-Identifier: Apache-2.0 */
/* see engine_slots.h */
#include "library/engine_slots.h"

#include <linux/membarrier.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "engine/open.h"
#include "table/operate.h"

_Static_assert(sizeof(struct weir_lane) == 128, "a lane has two cache lines of its own");

enum {
    LANE_ABSENT,  /* may be opened */
    LANE_REFUSED, /* could not be opened: the region or the process is out of something */
    LANE_FREE,
    LANE_TAKEN,
    LANE_KEPT, /* by its owner, who may be in it; for others to take away */
};

/* Whether the lane is open; under `opening`. */
static bool is_lane(const struct weir_lane *lane)
{
    return atomic_load_explicit(&lane->state, memory_order_relaxed) >= LANE_FREE;
}

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
            if (!is_lane(lane))
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
        if (!is_lane(lane))
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
    lane->standing.may_fail = lanes->standing_may_fail;
    lane->standing.unmarked = lanes->on.absent;
    weir_engine_set_standing(lane->engine, lanes->on.lists);
    int err = weir_standing_reader_open(&lane->standing, lanes->on.rules,
                                        weir_table_standing(lanes->on.table), &reason);
    (void)err;
    if (lane->standing.map)
        weir_engine_set_standing(lane->engine, lane->standing.map);
    weir_engine_miss_standing(lane->engine, lane->standing.missing);
}

static int open_stores(struct weir_lane *lane, const struct weir_engine_slots *lanes)
{
    struct weir_table *local = lanes->on.absent ? lanes->on.table : lanes->on.spare;
    lane->table = lanes->on.table;
    lane->local = NULL;
    lane->map = calloc(1, sizeof *lane->map);
    if (!lane->map)
        return WEIR_ERR_MEMORY;
    int err = lanes->on.absent ? weir_store_absent_open(&lane->store, lane->table)
                               : weir_store_embedded_open(&lane->store, lane->table);
    if (err < 0) {
        free(lane->map);
        return err;
    }
    if (local)
        err = lanes->on.absent ? weir_store_embedded_open(&lane->local, local)
                               : weir_store_spare_open(&lane->local, local);
    if (err < 0)
        close_stores(lane);
    return err;
}

/* Under `opening`. `place` is where the lane is, or will be: there it counts. */
static int build(struct weir_lane *lane, const struct weir_engine_slots *lanes,
                 struct weir_lane *place)
{
    int err = open_stores(lane, lanes);
    if (err < 0)
        return err;
    struct weir_engine_options options = {
        .store = lane->store,
        .local = lane->local,
        .rules = lanes->on.rules,
        .secret = weir_table_secret(lanes->on.table),
        .decisions = WEIR_LANE_DECISIONS,
        .lease_seed = lease_seed(),
        .lease_owner =
            lanes->own_leases ? weir_table_lease_owner(weir_store_embedded_owner(lane->store)) : 0,
        .done = ignore_done,
        .strike = weir_library_struck,
        .strike_context = lanes->strikes,
        .strikes_without_map = true,
        .counts = find_counts,
        .counts_context = place,
        .clock = lanes->clock,
        .clock_context = lanes->clock_context,
    };
    err = weir_engine_open(&lane->engine, &options);
    if (err < 0) {
        close_stores(lane);
        return err;
    }
    lane_open_standing(lane, lanes);
    return 0;
}

static void unbuild(struct weir_lane *lane)
{
    weir_engine_close(lane->engine);
    weir_standing_reader_close(&lane->standing);
    close_stores(lane);
}

/* Under `opening`. Leaves the lane taken. */
static int lane_open(struct weir_engine_slots *lanes, struct weir_lane *lane)
{
    lane->generation = 1;
    lane->of = lanes;
    lane_take_slot(lane, lanes);
    int err = build(lane, lanes, lane);
    if (err == 0)
        atomic_store_explicit(&lane->state, LANE_TAKEN, memory_order_relaxed);
    return err;
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
    lanes->standing_may_fail = options->standing_may_fail;
    lanes->on = options->on;
    lanes->strikes = options->strikes;
    lanes->state_file = options->state_file;
    lanes->clock = options->clock;
    lanes->clock_context = options->clock_context;
    lanes->edge = open_edge(lanes, WEIR_EDGE_WAIT);
    int err = lane_open(lanes, &lanes->lanes[0]);
    if (err < 0) {
        weir_edge_close(lanes->edge);
        return err;
    }
    weir_engine_slots_leave(&lanes->lanes[0]);
    pthread_mutex_init(&lanes->opening, NULL);
    weir_rules_ref(lanes->on.rules);
    return 0;
}

void weir_engine_slots_close(struct weir_engine_slots *lanes)
{
    for (uint32_t i = 0; i < lanes->count; i++) {
        if (atomic_load(&lanes->lanes[i].state) < LANE_FREE)
            continue;
        unbuild(&lanes->lanes[i]);
    }
    if (lanes->keeper != 0)
        pthread_key_delete(lanes->of_thread);
    weir_edge_close(lanes->edge);
    weir_rules_unref(lanes->on.rules);
    weir_standing_close(lanes->on.lists);
    pthread_mutex_destroy(&lanes->opening);
}

static bool take_as(struct weir_lane *lane, int as)
{
    return atomic_load_explicit(&lane->state, memory_order_relaxed) == as &&
           atomic_compare_exchange_strong_explicit(&lane->state, &as, LANE_TAKEN,
                                                   memory_order_acquire, memory_order_relaxed);
}

static bool take_free(struct weir_lane *lane)
{
    return take_as(lane, LANE_FREE);
}

static int membarrier(int command)
{
    return (int)syscall(SYS_membarrier, command, 0, 0);
}

/* Takes a lane from the thread that keeps it. */
static bool take_kept(struct weir_lane *lane)
{
    /* For a program that forbids itself membarrier after weir_engine_slots_keep: no store stays in
     * a processor's store buffer as long as that. */
    static const struct timespec drained = {.tv_nsec = 1000000};
    if (!take_as(lane, LANE_KEPT))
        return false;
    if (membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) < 0)
        nanosleep(&drained, NULL);
    while (atomic_load_explicit(&lane->busy, memory_order_acquire) != 0)
        sched_yield();
    return true;
}

/* Waits for the call that has it. */
static void take_lane(struct weir_lane *lane)
{
    while (!take_free(lane) && !take_kept(lane))
        sched_yield();
}

static uintptr_t this_thread(void)
{
    return (uintptr_t)pthread_self();
}

static bool is_own(const struct weir_lane *lane)
{
    return atomic_load_explicit(&lane->owner, memory_order_relaxed) == this_thread();
}

/* Enters the lane that this thread keeps. False: it does not keep it any more. */
static bool enter_own(struct weir_lane *lane)
{
    do {
        atomic_store_explicit(&lane->busy, 1, memory_order_relaxed);
        atomic_signal_fence(memory_order_seq_cst); /* the other side has the fence for both */
        if (atomic_load_explicit(&lane->state, memory_order_acquire) == LANE_KEPT) {
            lane->by_owner = true;
            return true;
        }
        atomic_store_explicit(&lane->busy, 0, memory_order_release);
        sched_yield();
    } while (is_own(lane));
    return false;
}

/* NULL: this thread keeps none. */
static struct weir_lane *find_own(struct weir_engine_slots *lanes)
{
    uintptr_t self = this_thread();
    for (uint32_t i = 0; i < lanes->count; i++)
        if (atomic_load_explicit(&lanes->lanes[i].owner, memory_order_relaxed) == self)
            return &lanes->lanes[i];
    return NULL;
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

/* A lane that no thread keeps; NULL: none is free now. */
static struct weir_lane *enter_shared(struct weir_engine_slots *lanes)
{
    int processor = lanes->count > 1 ? sched_getcpu() : 0;
    uint32_t home = processor < 0 ? 0 : (uint32_t)processor % lanes->count;
    for (uint32_t i = 0; i < lanes->count; i++) {
        struct weir_lane *lane = &lanes->lanes[(home + i) % lanes->count];
        if (take_free(lane) || take_absent(lanes, lane))
            return lane;
    }
    return NULL;
}

/* Where some are kept: this thread's own, another one, or, as the last, another thread's. */
__attribute__((noinline)) static struct weir_lane *enter_kept(struct weir_engine_slots *lanes)
{
    struct weir_lane *lane = find_own(lanes);
    if (lane && enter_own(lane))
        return lane;
    lane = enter_shared(lanes);
    for (uint32_t i = 0; !lane && i < lanes->count; i++)
        if (take_kept(&lanes->lanes[i]))
            lane = &lanes->lanes[i];
    return lane;
}

struct weir_lane *weir_engine_slots_enter(struct weir_engine_slots *lanes)
{
    for (;;) {
        bool kept = atomic_load_explicit(&lanes->kept, memory_order_relaxed) != 0;
        struct weir_lane *lane = kept ? enter_kept(lanes) : enter_shared(lanes);
        if (lane)
            return lane;
        sched_yield();
    }
}

void weir_engine_slots_leave(struct weir_lane *lane)
{
    if (lane->by_owner) {
        lane->by_owner = false;
        atomic_store_explicit(&lane->busy, 0, memory_order_release);
    } else {
        bool kept = atomic_load_explicit(&lane->owner, memory_order_relaxed) != 0;
        atomic_store_explicit(&lane->state, kept ? LANE_KEPT : LANE_FREE, memory_order_release);
    }
}

/* Whether a lane may become free. */
static bool may_be_free(struct weir_engine_slots *lanes)
{
    for (uint32_t i = 0; i < lanes->count; i++) {
        const struct weir_lane *lane = &lanes->lanes[i];
        if (atomic_load_explicit(&lane->state, memory_order_relaxed) == LANE_ABSENT ||
            (is_lane(lane) && atomic_load_explicit(&lane->owner, memory_order_relaxed) == 0))
            return true;
    }
    return false;
}

/* The thread that keeps it ends. */
static void give_at_end(void *lane)
{
    weir_engine_slots_give(lane);
}

/* What is kept ends with its thread: see give_at_end. */
static int make_key(struct weir_engine_slots *lanes)
{
    pthread_mutex_lock(&lanes->opening);
    if (lanes->keeper == 0 && pthread_key_create(&lanes->of_thread, give_at_end) == 0)
        lanes->keeper = getpid();
    bool made = lanes->keeper != 0;
    pthread_mutex_unlock(&lanes->opening);
    return made ? 0 : WEIR_ERR_MEMORY;
}

static int find_lane_to_keep(struct weir_engine_slots *lanes, struct weir_lane **lane)
{
    while (!(*lane = enter_shared(lanes))) {
        if (!may_be_free(lanes))
            return WEIR_ERR_FULL;
        sched_yield();
    }
    return 0;
}

int weir_engine_slots_keep(struct weir_engine_slots *lanes, struct weir_lane **lane)
{
    *lane = NULL;
    if (find_own(lanes))
        return WEIR_ERR_BUSY;
    if (membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) < 0)
        return WEIR_ERR_UNSUPPORTED;
    int err = make_key(lanes);
    if (err == 0)
        err = find_lane_to_keep(lanes, lane);
    if (err < 0)
        return err;
    if (pthread_setspecific(lanes->of_thread, *lane) != 0) {
        weir_engine_slots_leave(*lane);
        *lane = NULL;
        return WEIR_ERR_MEMORY;
    }
    atomic_store_explicit(&(*lane)->owner, this_thread(), memory_order_relaxed);
    atomic_fetch_add_explicit(&lanes->kept, 1, memory_order_relaxed);
    atomic_store_explicit(&(*lane)->state, LANE_KEPT, memory_order_release);
    return 0;
}

/* Under LANE_TAKEN. */
static void disown(struct weir_lane *lane)
{
    if (atomic_load_explicit(&lane->owner, memory_order_relaxed) == 0)
        return;
    atomic_store_explicit(&lane->owner, 0, memory_order_relaxed);
    atomic_fetch_sub_explicit(&lane->of->kept, 1, memory_order_relaxed);
}

void weir_engine_slots_give(struct weir_lane *lane)
{
    if (lane->of->keeper != getpid()) /* a child, in which no thread leaves what it was in */
        return;
    while (is_own(lane) && !take_kept(lane))
        sched_yield();
    if (!is_own(lane)) /* there was no room for it in another state */
        return;
    (void)pthread_setspecific(lane->of->of_thread, NULL);
    disown(lane);
    weir_engine_slots_leave(lane);
}

int weir_engine_slots_set_rules(struct weir_engine_slots *lanes, struct weir_rules *rules,
                                struct weir_standing *lists)
{
    struct weir_standing *before;
    int result = 0;
    pthread_mutex_lock(&lanes->opening);
    weir_rules_unref(lanes->on.rules);
    lanes->on.rules = weir_rules_ref(rules);
    before = lanes->on.lists;
    lanes->on.lists = lists;
    for (uint32_t i = 0; i < lanes->count; i++) {
        struct weir_lane *lane = &lanes->lanes[i];
        if (!is_lane(lane))
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

/* --- Another state ---------------------------------------------------------------------------- */

/* Under `opening`: gives the lane the insides that were built for it, and takes its own. */
static void exchange(struct weir_lane *lane, struct weir_lane *built)
{
    take_lane(lane);
    const struct weir_lane before = {.store = lane->store,
                                     .local = lane->local,
                                     .engine = lane->engine,
                                     .standing = lane->standing,
                                     .map = lane->map};
    lane->store = built->store;
    lane->local = built->local;
    lane->table = built->table;
    lane->engine = built->engine;
    lane->standing = built->standing;
    lane->map = built->map;
    lane->marked_ns = 0;
    lane->generation++;
    weir_engine_slots_leave(lane);
    *built = before;
}

/* Under `opening`: there is no room for it. */
static void end_lane(struct weir_lane *lane)
{
    take_lane(lane);
    unbuild(lane);
    disown(lane);
    atomic_store_explicit(&lane->state, LANE_REFUSED, memory_order_release);
}

/* The first lane is always open. */
static int move(struct weir_engine_slots *lanes)
{
    for (uint32_t i = 0; i < lanes->count; i++) {
        struct weir_lane built = {.state = LANE_ABSENT};
        if (!is_lane(&lanes->lanes[i]))
            continue;
        int err = build(&built, lanes, &lanes->lanes[i]);
        if (err < 0 && i == 0)
            return err;
        if (err < 0) {
            end_lane(&lanes->lanes[i]);
            continue;
        }
        exchange(&lanes->lanes[i], &built);
        unbuild(&built);
    }
    return 0;
}

int weir_engine_slots_move(struct weir_engine_slots *lanes, const struct weir_lanes_state *to)
{
    pthread_mutex_lock(&lanes->opening);
    const struct weir_lanes_state before = lanes->on;
    lanes->on = *to;
    int err = move(lanes);
    if (err < 0) {
        lanes->on = before;
    } else {
        weir_rules_ref(lanes->on.rules);
        weir_rules_unref(before.rules);
        weir_standing_close(before.lists); /* no lane reads it any more */
    }
    pthread_mutex_unlock(&lanes->opening);
    return err;
}
