/* SPDX-License-Identifier: Apache-2.0 */
/* The directories of all workers, as the daemon has them: one for each, all by the same settings.
 *
 * What is logged once for the process: that Redis is not reached (by the first worker), that it is
 * again (by the last), and what is wrong with a key's hash, by the first 16 digits of its digest,
 * once while it stays so. What operators forget is forgotten by every worker, within a turn of its
 * loop.
 *
 * Which Redis, prefix and `max_keys` are those that the daemon was started with; lives, deadline
 * and on_error are those of the newest rules.
 *
 * Threads: workers join, leave, tell and catch up on their own threads; anybody may read totals and
 * forget; internally locked, never on the path of a request that is answered from memory.
 */
#ifndef WEIR_FEATURE_IDENTITY_SERVER_DIRECTORIES_H
#define WEIR_FEATURE_IDENTITY_SERVER_DIRECTORIES_H

#include "feature/identity/server/directory_redis.h"
#include "server/daemon/limits.h"
#include "server/daemon/log.h"

struct weir_directories;

/* *directories is NULL where the rules name none. `table` is the one under the stores of all
 * workers. Errors: WEIR_ERR_RULES (`reason`: the URL), WEIR_ERR_MEMORY. */
int weir_directories_open(struct weir_directories **directories, struct weir_rules *rules,
                          struct weir_table *table, struct weir_log *log,
                          struct weir_reason *reason) __attribute__((warn_unused_result));

/* All workers have left, and no decision is made from an override. NULL is allowed. */
void weir_directories_close(struct weir_directories *directories);

/* Opens that of worker `index` (below WEIR_WORKERS_MAX) on its loop, for its stores. Errors: as
 * weir_redis_directory_open. */
int weir_directories_join(struct weir_directories *directories, unsigned index, uv_loop_t *loop,
                          struct weir_store *store, struct weir_store *local,
                          struct weir_redis_directory **directory, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* Closes it; the loop has to be run on. No totals are lost. */
void weir_directories_leave(struct weir_directories *directories, unsigned index);

/* Takes over what a reload may change. */
void weir_directories_set(struct weir_directories *directories,
                          const struct weir_identities_settings *settings);

/* Whether a running daemon cannot go from one to the other. */
bool weir_directories_differ(const struct weir_identities_settings *a,
                             const struct weir_identities_settings *b);

/* Has every worker forget a digest, when it next catches up: the caller wakes them. */
void weir_directories_forget(struct weir_directories *directories,
                             const uint8_t digest[WEIR_DIGEST_BYTES]);
void weir_directories_catch_up(struct weir_directories *directories, unsigned index);

/* Over all workers, including those that have left, except for gauges. */
struct weir_directories_totals {
    struct weir_directory_counters counters;
    uint32_t overrides;
    unsigned workers, up;
    bool deny; /* on_error: deny */
};
void weir_directories_totals(struct weir_directories *directories,
                             struct weir_directories_totals *totals);

#endif
