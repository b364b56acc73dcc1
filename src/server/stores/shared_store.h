/* SPDX-License-Identifier: Apache-2.0 */
/* The store that nodes share, as the daemon has it: one for each worker, all by the same settings.
 *
 * Each worker's store reports changes of its connection and its breaker. Operators want one line
 * for one change, not one a worker, so lines are written for the process: it is down when the first
 * worker's store is, and up when the last one's is again. A further reason (the password is wrong
 * now) is one more line, "store_still_down".
 *
 * The settings are those that the daemon was started with: it keeps those rules.
 *
 * Threads: workers join and leave on their own threads, anybody may read totals; internally locked,
 * never on the path of a decision.
 */
#ifndef WEIR_SERVER_STORES_SHARED_STORE_H
#define WEIR_SERVER_STORES_SHARED_STORE_H

#include "rules/rules.h"
#include "server/daemon/limits.h"
#include "server/daemon/log.h"
#include "store/redis/redis.h"

struct weir_shared_store;

/* The admin worker, whose store is in no total and no log. */
#define WEIR_SHARED_STORE_ADMIN WEIR_WORKERS_MAX

/* How long a call to the Redis of another region may take, except for requests that wait longer
 * (`wait`): enough for a slow way to it, and short enough that the breaker opens within seconds. */
#define WEIR_LENDER_DEADLINE_NS UINT64_C(500000000)

/* *shared is NULL where the rules name no such store. Errors: WEIR_ERR_RULES (`reason`: the URL),
 * WEIR_ERR_MEMORY. */
int weir_shared_store_open(struct weir_shared_store **shared, struct weir_rules *rules,
                           struct weir_log *log, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* The same for the store of another region, that lends: its name and settings, which `rules` hold.
 * Its lines say the region: region_up, region_down, region_still_down, region_breaker_open,
 * region_breaker_closed. All workers share one breaker (store/redis/shared_breaker.h). */
int weir_shared_store_open_region(struct weir_shared_store **shared, struct weir_rules *rules,
                                  const struct weir_store_settings *settings,
                                  struct weir_bytes region, struct weir_log *log,
                                  struct weir_reason *reason) __attribute__((warn_unused_result));

/* All workers have left. `shared` may be NULL. */
void weir_shared_store_close(struct weir_shared_store *shared);

/* Opens the store of worker `index` on its loop. Errors: as weir_store_redis_open. */
int weir_shared_store_join(struct weir_shared_store *shared, unsigned index, uv_loop_t *loop,
                           struct weir_store **store, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* Closes it: with `closed` after its shares were handed back, while the loop runs; with NULL at
 * once, the loop has yet to be run until its handles are closed. No totals are lost. */
void weir_shared_store_leave(struct weir_shared_store *shared, unsigned index,
                             struct weir_store *store, void (*closed)(void *context),
                             void *context);

/* Over all workers, those that have left included; `stats.up` and `stats.breaker` are sums and of
 * no use. */
struct weir_shared_totals {
    struct weir_store_redis_stats stats;
    unsigned workers, up, open, half_open;
    bool reached; /* all workers have reached it, at some time since the start */
};
void weir_shared_store_totals(struct weir_shared_store *shared, struct weir_shared_totals *totals);

/* With which words the store's server refuses this node, for a person to read: its password, its
 * rights. Empty: it does not, or it is not known. */
void weir_shared_store_refusal(struct weir_shared_store *shared, char text[WEIR_REASON_MAX]);

/* What a worker's store tells; for the stores, and for tests. `index` was joined. */
void weir_shared_store_tell(struct weir_shared_store *shared, unsigned index, const char *event,
                            const char *text);

#endif
