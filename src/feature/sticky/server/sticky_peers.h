/* SPDX-License-Identifier: Apache-2.0 */
/* The other nodes of a fleet without a shared store, as the daemon has them: a sticky store for
 * each worker, all by the same list.
 *
 * Each worker's store reports by itself when it reaches a peer or loses it. Operators want one line
 * for one change, not one a worker, so lines are written for the process: a peer is down when the
 * first worker has lost it, and up when the last one reaches it again.
 *
 * A reload brings another list:
 *
 *   background thread   weir_sticky_list_read: names, URLs, certificates; all that can be wrong
 *   main thread         weir_sticky_peers_set: the newest list; one line of what has changed
 *   each worker         weir_sticky_peers_take, between decisions: keeps the connections of peers
 *                       whose URL, token and TLS stay, opens new ones, and closes the others when
 *                       what they were asked is answered
 *
 * Workers may have different lists for a moment; each asks by its own. What is counted of a peer
 * goes by its name, and is kept as long as the newest list, or a connection, has it.
 *
 * Memory: 110 KiB a list, 9 KiB a peer. Threads: workers join, take and leave on their own threads,
 * the main thread sets the list, anybody may read totals; internally locked, never on the path of a
 * decision.
 */
#ifndef WEIR_FEATURE_STICKY_SERVER_STICKY_PEERS_H
#define WEIR_FEATURE_STICKY_SERVER_STICKY_PEERS_H

#include "feature/sticky/rules/peers.h"
#include "feature/sticky/store/sticky.h"
#include "rules/rules.h"
#include "server/daemon/limits.h"
#include "server/daemon/log.h"

struct weir_sticky_peers;

/* The nodes by one reading of the rules; immutable, reference counted. */
struct weir_sticky_list;

/* Reads the list of these rules, and the files of certificates that they name. *list is NULL where
 * they have no such section. Errors: WEIR_ERR_RULES (`reason`: a URL, a file), WEIR_ERR_MEMORY. */
int weir_sticky_list_read(struct weir_sticky_list **list, struct weir_rules *rules,
                          struct weir_reason *reason) __attribute__((warn_unused_result));

/* NULL is ignored. */
void weir_sticky_list_unref(struct weir_sticky_list *list);

/* *peers is NULL where the rules have no such section. Errors: as weir_sticky_list_read. */
int weir_sticky_peers_open(struct weir_sticky_peers **peers, struct weir_rules *rules,
                           struct weir_log *log, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* All workers have left. `peers` may be NULL. */
void weir_sticky_peers_close(struct weir_sticky_peers *peers);

/* Makes a list the newest, and logs how it differs from the one before; takes over the reference.
 * This node has the same name in both. Workers follow with weir_sticky_peers_take. Errors:
 * WEIR_ERR_MEMORY; the list before stays, and the reference is the caller's. */
int weir_sticky_peers_set(struct weir_sticky_peers *peers, struct weir_sticky_list *list)
    __attribute__((warn_unused_result));

/* Opens the store of worker `index` on its loop, beside its `table`. WEIR_WORKERS_MAX is the admin
 * worker, whose store is in no total and no log. Errors: as weir_store_sticky_open. */
int weir_sticky_peers_join(struct weir_sticky_peers *peers, unsigned index, uv_loop_t *loop,
                           struct weir_store *table, const uint64_t *table_secret,
                           struct weir_store **store, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* Has the store of worker `index` go by the newest list from the next decision on. Without memory
 * it continues with the list that it has, which is logged. */
void weir_sticky_peers_take(struct weir_sticky_peers *peers, unsigned index,
                            struct weir_store *store);

/* Closes it; `closed` may be NULL: then the loop has yet to be run until its handles are closed. No
 * totals are lost. */
void weir_sticky_peers_leave(struct weir_sticky_peers *peers, unsigned index,
                             struct weir_store *store, void (*closed)(void *context),
                             void *context);

/* One peer over all workers, those that have left included; `stats.up` is 1 where all workers reach
 * it. */
struct weir_sticky_total {
    char name[RULES_PEER_NAME_MAX + 1];
    struct sticky_peer_stats stats;
};

/* Every peer of the newest list but this node, in the order of the file. Returns how many. */
uint32_t weir_sticky_peers_totals(struct weir_sticky_peers *peers,
                                  struct weir_sticky_total totals[STICKY_PEERS_MAX]);

#endif
