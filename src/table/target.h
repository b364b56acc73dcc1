/* SPDX-License-Identifier: Apache-2.0 */
/* Targets: the state that a check is decided on, found under locks.
 *
 * Resolving finds the state of every check of a decision and writes nothing that matters (a span
 * for a new key is allocated already; cancelling takes it back). It holds the locks of everything
 * that it looks at; the owner releases them when it ends the transaction. charge.h writes.
 *
 *   found in one of its buckets                     TARGET_SLOT
 *   not found, and its overflow cells are live       TARGET_OVERFLOW  (or else a key would be
 *                                                                     pardoned by coming again)
 *   a slot is empty, fresh, or taken from another    TARGET_NEW
 *   neither, or no span is left                      TARGET_OVERFLOW
 *
 * Two checks of one decision may have the same state: the same key twice, or shared cells. They are
 * decided as one check of their joint cost; so are all checks that overflow under the same
 * parameters, whichever cells they have. */
#ifndef WEIR_TABLE_TARGET_H
#define WEIR_TABLE_TARGET_H

#include "table/placement.h"
#include "table/region.h"

/* A part of a decision that is one transaction: its checks first .. first + count - 1. */
struct transaction {
    struct weir_decision *decision;
    const struct lookup *ahead; /* of each check of the decision */
    uint64_t now_ns;
    uint32_t first, count;
    bool shares; /* two checks have one state */
};

/* Takes the locks that an attempt is known to need, waiting for each, in address order. False:
 * owner->stuck. target_want adds one of them. */
bool target_lock_wanted(struct weir_table_owner *owner) __attribute__((warn_unused_result));
void target_want(struct weir_table_owner *owner, uint32_t *lock);

/* Resolves all checks to owner->targets. False: with owner->lost or owner->no_room the caller
 * cancels and begins again; with owner->stuck it cancels and fails. */
bool target_resolve(struct weir_table_owner *owner, struct transaction *txn);

/* Commits the transaction and releases its locks. False: owner->stuck, and all is undone. */
bool target_finish(struct weir_table_owner *owner) __attribute__((warn_unused_result));

/* Undoes everything, and releases its locks. */
void target_cancel(struct weir_table_owner *owner);

#endif
