/* SPDX-License-Identifier: Apache-2.0 */
/* The other nodes of a fleet without a shared store, as the daemon has them: a sticky store for
 * each worker, all by the same settings.
 *
 * Each worker's store reports by itself when it reaches a peer or loses it. Operators want one line
 * for one change, not one a worker, so lines are written for the process: a peer is down when the
 * first worker has lost it, and up when the last one reaches it again.
 *
 * The settings are those that the daemon was started with: it keeps those rules.
 *
 * Threads: workers join and leave on their own threads, anybody may read totals; internally locked,
 * never on the path of a decision.
 */
#ifndef WEIR_SERVER_STICKY_STICKY_PEERS_H
#define WEIR_SERVER_STICKY_STICKY_PEERS_H

#include "rules/rules.h"
#include "server/daemon/limits.h"
#include "server/daemon/log.h"
#include "store/sticky/sticky.h"

struct weir_sticky_peers;

/* *peers is NULL where the rules have no such section. Errors: WEIR_ERR_RULES (`reason`: a URL),
 * WEIR_ERR_MEMORY. */
int weir_sticky_peers_open(struct weir_sticky_peers **peers, struct weir_rules *rules,
                           struct weir_log *log, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* All workers have left. `peers` may be NULL. */
void weir_sticky_peers_close(struct weir_sticky_peers *peers);

/* Opens the store of worker `index` on its loop, beside its `table`. WEIR_WORKERS_MAX is the admin
 * worker, whose store is in no total and no log. Errors: as weir_store_sticky_open. */
int weir_sticky_peers_join(struct weir_sticky_peers *peers, unsigned index, uv_loop_t *loop,
                           struct weir_store *table, const uint64_t *table_secret,
                           struct weir_store **store, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* Closes it; `closed` may be NULL: then the loop has yet to be run until its handles are closed. No
 * totals are lost. */
void weir_sticky_peers_leave(struct weir_sticky_peers *peers, unsigned index,
                             struct weir_store *store, void (*closed)(void *context),
                             void *context);

/* How many nodes there are, and the name of one; `self` is this node. */
uint32_t weir_sticky_peers_count(const struct weir_sticky_peers *peers);
const char *weir_sticky_peers_name(const struct weir_sticky_peers *peers, uint32_t peer);
uint32_t weir_sticky_peers_self(const struct weir_sticky_peers *peers);

/* Of one peer over all workers, those that have left included; `up` is 1 where all workers reach
 * it. */
void weir_sticky_peers_totals(struct weir_sticky_peers *peers, uint32_t peer,
                              struct sticky_peer_stats *totals);

/* What a worker's store reports; for the stores, and for tests. `index` was joined. */
void weir_sticky_peers_report(struct weir_sticky_peers *peers, unsigned index, uint32_t peer,
                              bool up, const char *text);

#endif
