/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on states rather than requests: ending leases, forgetting a key, looking when it is
 * fresh, each a transaction of its own; and edits of several cells as one.
 *
 * Threads: as struct weir_table_owner.
 */
#ifndef WEIR_TABLE_OPERATE_H
#define WEIR_TABLE_OPERATE_H

#include "table/table.h"

struct lookup;

/* Ends a lease. Errors: WEIR_ERR_NOT_FOUND, WEIR_ERR_BUSY (as of a decision). */
int weir_table_release(struct weir_table_owner *owner, const uint64_t hash[2], uint64_t lease_id);

/* Forgets the state of a key. Errors: WEIR_ERR_NOT_FOUND (there was none, or it was fresh),
 * WEIR_ERR_BUSY. */
int weir_table_reset(struct weir_table_owner *owner, uint64_t now_ns, const uint64_t hash[2]);

/* When the state of a key will equal a fresh one (possibly in the past), under the limit that it
 * was made with. A key that counts in overflow cells is not found. Errors: WEIR_ERR_NOT_FOUND,
 * WEIR_ERR_BUSY. */
int weir_table_look(struct weir_table_owner *owner, const uint64_t hash[2], uint64_t *fresh_at_ns)
    __attribute__((warn_unused_result));

/* Ends all leases of one lease owner (see struct weir_lease); walks all buckets, and skips those
 * that a stopped owner has locked. Returns how many it ended. */
uint64_t weir_table_end_owner(struct weir_table_owner *owner, uint64_t lease_owner);

/* What leases name `owner` by, as long as it is attached: its slot and that slot's generation. */
uint64_t weir_table_lease_owner(const struct weir_table_owner *owner);

/* Fills the lease owners that are attached and alive: one system call for each slot that was ever
 * attached. */
void weir_table_lease_owners(const struct weir_table *table, struct weir_lease_owners *alive);

/* The generation of each slot's last owner, dead or alive; 0: there was none. Each owner that
 * attaches raises that of its slot by 1. */
void weir_table_owner_generations(const struct weir_table *table,
                                  uint32_t generations[WEIR_LEASE_OWNERS]);

/* Ends the leases of owners that have died or detached, as weir_table_end_owner does, in up to
 * `buckets` buckets from *from on, which it moves: to 0 after the last one. Returns how many it
 * ended. */
uint64_t weir_table_end_dead(struct weir_table_owner *owner, uint64_t *from, uint64_t buckets);

/* The lease expires a whole life after `now_ns`. Errors: as weir_table_release. */
int weir_table_renew(struct weir_table_owner *owner, uint64_t now_ns, const uint64_t hash[2],
                     uint64_t lease_id) __attribute__((warn_unused_result));

/* WEIR_OP_RELEASE, WEIR_OP_RESET and WEIR_OP_LOOK: does it for each check with a state, one after
 * the other, and fills the outcomes and the verdict: allowed iff one of them had something to end,
 * forget or show.
 *
 * WEIR_OP_EDIT (struct weir_edit says what it is) is one transaction. It resolves the states of all
 * its checks, has them edited, and writes those that changed. Where a counter outgrows the narrow
 * limit, it begins again with the wide one for that key: what it resolves is then a span. A state
 * of one limit is carried over to the other as any state whose limit has changed (target.c). What
 * is edited never counts in shared cells: a key without room makes the edit WEIR_DENIED.
 *
 * `ahead` has an entry for each check. decision->now_ns is set. */
void operate(struct weir_table_owner *owner, struct weir_decision *decision,
             const struct lookup *ahead);

#endif
