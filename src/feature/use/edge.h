/* SPDX-License-Identifier: Apache-2.0 */
/* The edge: counts of what other processes on a state file decide with libweir, as inside nginx. A
 * file of fixed size beside the state file, STATE.edge, which the first process makes that needs
 * it.
 *
 *   | header: magic, version, bytes, used | slot 0 | slot 1 | ... | slot 255 |
 *   slot: | results by front | limit: hash of its name, counts | limit | ... |
 *
 * A thread that decides takes a slot and counts in it directly: what it has counted is there when
 * its process is killed, and no other thread writes the same cache line. A lock on a byte of the
 * file says that a slot is taken; the kernel drops it when the process ends, and all children that
 * it forked and that did not exec, which inherit the open file. The next one that takes the slot
 * adds to its counts, so nothing is counted twice and nothing is lost. Counts only grow,
 * as long as the file lives.
 *
 * A slot has room for WEIR_EDGE_LIMITS names of limits; the decisions of others are in the results
 * alone. A name keeps its room when the rules lose it. What is bought above a limit has a name, too
 * (rules/charge/top_up.h); its `cost` are the units that requests have taken.
 *
 * Trust: who may write the state may write here. A reader never maps the file: it reads at offsets
 * of its own, and what it finds are numbers that only its metrics show.
 *
 * Memory: 4 MiB and 4 KiB, as a file. Threads: a handle has one owner at a time; a slot has one
 * writer; any may read.
 */
#ifndef WEIR_FEATURE_USE_EDGE_H
#define WEIR_FEATURE_USE_EDGE_H

#include <stdbool.h>
#include <stddef.h>

#include <weir/error.h>
#include <weir/limit.h>

#include "feature/use/counts.h"

#define WEIR_EDGE_SLOTS 256 /* as many as a state has owners */
#define WEIR_EDGE_LIMITS 255

/* Where a request was decided. */
enum weir_edge_front { WEIR_EDGE_LIBRARY, WEIR_EDGE_NGINX, WEIR_EDGE_FRONTS };

/* What became of it: `allowed` at once, or with a delay. */
enum weir_edge_result { WEIR_EDGE_ALLOWED, WEIR_EDGE_DELAYED, WEIR_EDGE_DENIED, WEIR_EDGE_RESULTS };

/* The results of one front in one slot. */
struct weir_edge_results {
    _Atomic uint64_t counts[WEIR_EDGE_RESULTS];
    _Atomic uint64_t unknown; /* those decided while the map of standing was missing */
};

struct weir_edge;
struct weir_edge_slot;

/* How to open the file. */
enum weir_edge_how {
    WEIR_EDGE_REPLACE = 1, /* makes a file of another version anew */
    WEIR_EDGE_WAIT = 2,    /* waits up to 0.2 s for a process that is making it: at a start only */
};

/* Opens the file beside `state_file`, which exists, or makes it with the same owner, group and
 * mode. `how`: of enum weir_edge_how. Errors: WEIR_ERR_FORMAT (another version, no plain file, or
 * one with a second name), WEIR_ERR_BUSY (another process is making it, or others remove it all the
 * time; later it may work), WEIR_ERR_MEMORY, WEIR_ERR_IO; *reason names the file. */
int weir_edge_open(struct weir_edge **edge, const char *state_file, unsigned how,
                   struct weir_reason *reason) __attribute__((warn_unused_result));

/* Gives the slots that it took back; nobody writes them any more. NULL is allowed. */
void weir_edge_close(struct weir_edge *edge);

/* Whether the file is still the one beside the state file. */
bool weir_edge_is_current(const struct weir_edge *edge);

/* --- Writers ---------------------------------------------------------------------------------- */

/* Takes a slot that no handle has: those of ended processes and closed handles are free again.
 * NULL: there is none, or the file was not mapped. */
struct weir_edge_slot *weir_edge_take(struct weir_edge *edge);

/* Where the slot's owner counts, by rules/counter.h: its results, those among them that
 * on_store_error decided, and the counts of a limit by name (NULL: the slot has no room for another
 * name). Good until the edge is closed. */
struct weir_edge_results *weir_edge_results(struct weir_edge_slot *slot,
                                            enum weir_edge_front front);
_Atomic uint64_t *weir_edge_failed(struct weir_edge_slot *slot,
                                   const struct weir_edge_results *results);
struct weir_counts *weir_edge_limit(struct weir_edge_slot *slot, const char *name, size_t size);

/* --- Readers ---------------------------------------------------------------------------------- */

/* The hash by which the file names a limit; never 0. */
uint64_t weir_edge_name(const char *name, size_t size);

/* The sums of one limit. */
struct weir_edge_sum {
    uint64_t allowed, denied, shadow_denied, cost, delayed;
};

/* Reads all slots: fills `results` with the sums over them, and calls `add` for each limit of each
 * slot. Reads 16 KiB a slot that was ever taken. Errors: WEIR_ERR_IO (the file was cut short). */
typedef void (*weir_edge_add)(void *context, uint64_t name, const struct weir_edge_sum *counts);
int weir_edge_read(const struct weir_edge *edge,
                   uint64_t results[WEIR_EDGE_FRONTS][WEIR_EDGE_RESULTS], weir_edge_add add,
                   void *context) __attribute__((warn_unused_result));

/* How many requests were decided while the map of standing was missing, over all slots. */
uint64_t weir_edge_unknown(const struct weir_edge *edge);

/* How many requests on_store_error has decided, because the state did not answer or could not be
 * opened, over all slots. */
void weir_edge_failures(const struct weir_edge *edge, uint64_t failed[WEIR_EDGE_FRONTS]);

#endif
