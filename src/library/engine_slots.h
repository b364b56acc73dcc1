/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes: engines for the threads of a program that is not ours.
 *
 * An engine and its store belong to one thread at a time, but a library does not know which threads
 * call it, nor for how long. So there are lanes, each an engine on a table owner of its own. A call
 * enters the lane of the processor it runs on, and where that one is taken, the next: a thread
 * finds warm caches, and threads on different processors write different lines. Entering and
 * leaving cost one locked instruction. A lane is opened when it is first wanted.
 *
 * Memory: about 100 KiB a lane; at most WEIR_LANES_MAX, of the 256 owners that a region has for all
 * processes on it.
 * Threads: internally locked. When all lanes are taken (more threads in calls than lanes, which
 * needs threads that lost their processor inside one) the caller yields until one is free.
 *
 * A thread may keep a lane (weir_lane_keep). It then enters with a store and a load, no locked
 * instruction; every other thread that wants that lane (another thread that finds no other, new
 * rules) pays for both: it takes the lane's state away, lets the kernel order the owner's memory
 * accesses (membarrier), and waits until the owner is out. This is Dekker's mutual exclusion with
 * the fence on one side, as in biased locks and liburcu ("sys_membarrier", 2015). A thread that
 * ends gives its lane back, by the destructor of a thread-specific value.
 *
 *   owner:  busy = 1; [compiler only]; state == KEPT ? in : (busy = 0, try again)
 *   other:  KEPT -> TAKEN; membarrier; wait for busy == 0; in
 *
 * Where the state could not be opened, lanes are on a stand-in, by on_store_error of the limits;
 * weir_engine_slots_move brings them to the state when it is there, one after the other, while
 * others decide.
 */
#ifndef WEIR_LIBRARY_ENGINE_SLOTS_H
#define WEIR_LIBRARY_ENGINE_SLOTS_H

#include <pthread.h>
#include <sys/types.h>

#include "engine/engine.h"
#include "feature/use/edge.h"
#include "library/attributes.h"
#include "library/standing_reader.h"
#include "library/strikes.h"
#include "table/table.h"

#define WEIR_LANES_MAX 64

/* That a lane decides together (weir_check_many): enough to overlap the misses of caches. */
#define WEIR_LANE_DECISIONS 8

struct weir_lane {
    _Atomic int state;
    _Atomic int busy;         /* the thread that keeps it is in it */
    _Atomic(uintptr_t) owner; /* that thread; 0: none keeps it */
    struct weir_engine_slots *of;
    uint32_t generation; /* of its rules, from 1 */
    bool by_owner;       /* who is in it is the thread that keeps it */
    uint64_t marked_ns;  /* when the table's high-water mark was last raised from here */
    struct weir_store *store;
    struct weir_store *local; /* where on_store_error: local decides; NULL: no state file */
    struct weir_table *table; /* whose time this lane has */
    struct weir_engine *engine;
    struct weir_standing_reader standing;
    struct weir_attribute_map *map;    /* of handles; owned */
    struct weir_edge_slot *edge;       /* where it counts, see feature/use/edge.h; NULL: nowhere */
    struct weir_edge_results *results; /* in that slot, of this program's front; or NULL */
    char line[128 - 120];              /* two lines: processors fetch them in pairs */
};

/* What lanes decide on, and by. */
struct weir_lanes_state {
    struct weir_table *table, *spare; /* spare: the table's, or NULL */
    bool absent;                      /* the table is a stand-in: see weir_store_absent_open */
    struct weir_rules *rules;         /* prepared for the table */
    struct weir_standing *lists;      /* of these rules, see weir_standing_lists_open; or NULL */
};

struct weir_engine_slots {
    struct weir_lane lanes[WEIR_LANES_MAX];
    uint32_t count;          /* as many as the machine has processors, or the program says */
    _Atomic uint32_t kept;   /* of them */
    pthread_key_t of_thread; /* the lane that a thread keeps, which its end gives back */
    pid_t keeper;            /* the process that made this key, under `opening`; 0: there is none */
    bool own_leases;         /* leases end with the process */
    bool standing_may_fail;
    pthread_mutex_t opening;
    struct weir_lanes_state on; /* under `opening`: what a new lane starts with, as the next one */
    struct weir_library_strikes *strikes;
    const char *state_file; /* borrowed; NULL: private memory */
    uint64_t (*clock)(void *context);
    void *clock_context;
    struct weir_edge *edge;     /* under `opening`; NULL: there is none, or not now */
    enum weir_edge_front front; /* what the program is */
};

struct weir_engine_slots_options {
    struct weir_lanes_state on; /* one reference of the rules is taken; lists: owned on success */
    struct weir_library_strikes *strikes; /* borrowed */
    const char *state_file;               /* borrowed; NULL: private memory */
    uint64_t (*clock)(void *context);     /* the time of the table now, for schedules */
    void *clock_context;
    uint32_t count;         /* the most lanes; 0: as many as the machine has processors */
    bool own_leases;        /* leases end with the process */
    bool standing_may_fail; /* see weir_options */
};

/* Opens the first lane, so that at least one is there. Errors: WEIR_ERR_MEMORY, WEIR_ERR_FULL (no
 * owner slot), WEIR_ERR_IO. */
int weir_engine_slots_open(struct weir_engine_slots *lanes,
                           const struct weir_engine_slots_options *options)
    __attribute__((warn_unused_result));
void weir_engine_slots_close(struct weir_engine_slots *lanes);

/* Begins to count in the file beside the state, where that was not there before, or is another
 * one. For weir_tend. */
void weir_engine_slots_renew_edge(struct weir_engine_slots *lanes);

/* Counts as this front from now on. */
void weir_engine_slots_set_front(struct weir_engine_slots *lanes, enum weir_edge_front front);

struct weir_lane *weir_engine_slots_enter(struct weir_engine_slots *lanes);
void weir_engine_slots_leave(struct weir_lane *lane);

/* Gives a lane to the calling thread: see weir_lane_keep. */
int weir_engine_slots_keep(struct weir_engine_slots *lanes, struct weir_lane **lane)
    __attribute__((warn_unused_result));
/* By the same thread; at its end by itself. */
void weir_engine_slots_give(struct weir_lane *lane);

/* Gives new rules, and their lists, which it owns from now on, to every lane, one after the other.
 * Errors: WEIR_ERR_MEMORY: some lanes may keep the old rules until the next call. */
int weir_engine_slots_set_rules(struct weir_engine_slots *lanes, struct weir_rules *rules,
                                struct weir_standing *lists) __attribute__((warn_unused_result));

/* Moves every lane to another state; takes a reference of its rules, and owns its lists. The tables
 * of before are the caller's to close. A lane beyond the first for which there is no room ends.
 * Errors: as weir_engine_slots_open; nothing has changed. */
int weir_engine_slots_move(struct weir_engine_slots *lanes, const struct weir_lanes_state *to)
    __attribute__((warn_unused_result));

#endif
