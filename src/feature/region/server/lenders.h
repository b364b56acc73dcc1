/* SPDX-License-Identifier: Apache-2.0 */
/* The stores of other regions, which lend to this node and decide for it: one for each region and
 * worker.
 *
 * Each is a store on the Redis of that region (store/redis/redis.h, `far`), of which portions are
 * asked for (feature/region/engine/lend.h) and, for limits with `wait`, exact decisions
 * (feature/region/engine/question.h). Its connections are its own. A region has one breaker for all
 * workers (store/redis/shared_breaker.h): a region that is gone costs no other region anything, and
 * one that is silent costs all workers together a few late calls. Until that breaker opens, its
 * questions may take the place of those to other regions (WEIR_QUESTIONS_MAX). Operators have one
 * line for one change of a region: region_up, region_down, region_breaker_open,
 * region_breaker_closed.
 *
 * The regions are those that the daemon was started with. A reload finds them by name: one that is
 * new lends nothing until a restart, so that keys whose home it is have their floor here; one that
 * has left keeps its connections until then. A reload with another Redis of a region is refused
 * (weir_lenders_check), because units that are lent belong to the Redis that has charged them.
 *
 * Memory: of each worker and other region a table of 65,536 keys (store/redis/share/shares.h): 2.5
 * MiB, and 44 MiB more if all of them are lent; and one of remembered denials, 10 MiB if it is
 * full.
 *
 * Threads: as server/stores/shared_store.h.
 */
#ifndef WEIR_FEATURE_REGION_SERVER_LENDERS_H
#define WEIR_FEATURE_REGION_SERVER_LENDERS_H

#include "feature/region/rules/home.h"
#include "server/stores/shared_store.h"

struct weir_lenders;

/* The stores of one worker, by the numbers of the regions; NULL where there is none. */
struct weir_lender_stores {
    struct weir_store *region[RULES_REGIONS_MAX];
};

/* *lenders is NULL where no limit of the rules lends or waits. Errors: WEIR_ERR_RULES (`reason`: a
 * URL), WEIR_ERR_MEMORY. */
int weir_lenders_open(struct weir_lenders **lenders, struct weir_rules *rules, struct weir_log *log,
                      struct weir_reason *reason) __attribute__((warn_unused_result));

/* All workers have left. NULL is allowed. */
void weir_lenders_close(struct weir_lenders *lenders);

/* Opens the stores of worker `index` on its loop. Errors: as weir_store_redis_open; then none is
 * open. */
int weir_lenders_join(struct weir_lenders *lenders, unsigned index, uv_loop_t *loop,
                      struct weir_lender_stores *stores, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* Closes them as weir_shared_store_leave does, `closed` once for each. Returns how many. */
unsigned weir_lenders_leave(struct weir_lenders *lenders, unsigned index,
                            struct weir_lender_stores *stores, void (*closed)(void *context),
                            void *context);

/* How many regions lend. NULL: 0. */
unsigned weir_lenders_count(const struct weir_lenders *lenders);

/* Whether a daemon that runs with `lenders` (may be NULL) can take these rules over. Errors:
 * WEIR_ERR_RULES (`reason`). */
int weir_lenders_check(const struct weir_lenders *lenders, const struct weir_rules *rules,
                       struct weir_reason *reason) __attribute__((warn_unused_result));

/* Whether the rules reach a region that lends in another way, by other credentials or TLS: the
 * stores keep those that they were opened with. NULL: false. */
bool weir_lenders_differ(const struct weir_lenders *lenders, const struct weir_rules *rules);

/* Numbers the regions of rules that are about to be handed over as those that lend. `lenders` may
 * be NULL. Returns whether these are all of them; false: a restart opens and closes what differs.
 */
bool weir_lenders_number(const struct weir_lenders *lenders, struct weir_rules *rules);

/* Region `i`, below RULES_REGIONS_MAX: its name, and the totals of its stores. False: it does not
 * lend. */
bool weir_lenders_totals(struct weir_lenders *lenders, unsigned i, struct weir_bytes *name,
                         struct weir_shared_totals *totals);

#endif
