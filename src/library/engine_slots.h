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
 */
#ifndef WEIR_LIBRARY_ENGINE_SLOTS_H
#define WEIR_LIBRARY_ENGINE_SLOTS_H

#include <pthread.h>

#include "engine/engine.h"
#include "library/standing_reader.h"
#include "table/table.h"

#define WEIR_LANES_MAX 64

struct weir_lane {
    _Atomic int state;
    uint64_t marked_ns; /* when the table's high-water mark was last raised from here */
    struct weir_store *store;
    struct weir_store *local; /* where on_store_error: local decides; NULL: no state file */
    struct weir_engine *engine;
    struct weir_standing_reader standing;
    char line[128 - 56]; /* two lines: processors fetch them in pairs */
};

struct weir_engine_slots {
    struct weir_lane lanes[WEIR_LANES_MAX];
    uint32_t count; /* as many as the machine has processors */
    pthread_mutex_t opening;
    struct weir_table *table, *spare;
    struct weir_rules *rules;    /* under `opening`: what a new lane starts with, as the next one */
    struct weir_standing *lists; /* of these rules, see weir_standing_lists_open; or NULL */
};

/* Opens the first lane, so that at least one is there. Takes a reference of the rules, which must
 * be prepared for the table, and owns `lists` (NULL: none) on success. `spare` is the table's, or
 * NULL. Errors: WEIR_ERR_MEMORY,
 * WEIR_ERR_FULL (no owner slot), WEIR_ERR_IO.
 */
int weir_engine_slots_open(struct weir_engine_slots *lanes, struct weir_table *table,
                           struct weir_table *spare, struct weir_rules *rules,
                           struct weir_standing *lists) __attribute__((warn_unused_result));
void weir_engine_slots_close(struct weir_engine_slots *lanes);

struct weir_lane *weir_engine_slots_enter(struct weir_engine_slots *lanes);
void weir_engine_slots_leave(struct weir_lane *lane);

/* Gives new rules, and their lists, which it owns from now on, to every lane, one after the other.
 * Errors: WEIR_ERR_MEMORY: some lanes may keep the old rules until the next call. */
int weir_engine_slots_set_rules(struct weir_engine_slots *lanes, struct weir_rules *rules,
                                struct weir_standing *lists) __attribute__((warn_unused_result));

#endif
