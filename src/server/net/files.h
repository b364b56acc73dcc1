/* SPDX-License-Identifier: Apache-2.0 */
/* Open files: how many connections each listener may have under the process's limit of them.
 *
 * Every listener has a pool of connections of its own (listener.h), so that one that is full shuts
 * nobody out of another. Together with what weir itself keeps open the pools fit the limit: there
 * is always a file for the next connection of a pool that has room, and for the admin listener.
 *
 *   limit = taken by weir + admin listeners * (max + refusals) + others * (max + refusals)
 *
 * An admin listener gets an eighth of what is left, at most WEIR_ADMIN_CONNECTIONS_MAX; the others
 * share the rest evenly, at most WEIR_CONNECTIONS_MAX a worker. Of each share an eighth, at most
 * WEIR_REFUSALS_MAX, is for connections that are answered 503.
 *
 * Threads: the plan is pure; the rest is called once, by the main thread.
 */
#ifndef WEIR_SERVER_NET_FILES_H
#define WEIR_SERVER_NET_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "server/daemon/limits.h"

struct weir_files {
    uint64_t limit;     /* of open files */
    uint64_t taken;     /* open now, or later, for anything but connections */
    uint32_t workers;   /* at least 1 */
    uint32_t listeners; /* for decisions */
    uint32_t admin_listeners;
};

/* What one listener gets. */
struct weir_files_share {
    uint32_t max;      /* connections that are served */
    uint32_t refusals; /* those beyond, which are answered 503 */
};

struct weir_files_plan {
    struct weir_files_share decisions, admin;
    uint64_t least; /* the lowest limit that will do */
    uint64_t full;  /* the limit from which on the pools grow no more */
};

/* Fills the plan. Errors: WEIR_ERR_FULL (the limit is below plan->least). */
int weir_files_plan(const struct weir_files *files, struct weir_files_plan *plan)
    __attribute__((warn_unused_result));

/* Raises the limit as far as the system lets it, and returns it. */
uint64_t weir_files_raise_limit(void);

/* How many files are open, of the lowest 4,096 numbers. */
uint32_t weir_files_count(void);

#endif
