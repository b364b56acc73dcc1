/* SPDX-License-Identifier: Apache-2.0 */
/* Targets: the state that a check is decided on, found under locks, and how it is charged.
 *
 * Resolving finds the state of every check of a decision and writes nothing that matters (a span
 * for a new key is allocated already; cancelling takes it back). Charging writes in place, through
 * the undo journal where a transaction has more than one store. Both hold the locks of everything
 * they look at; the owner releases them when it ends the transaction.
 *
 *   found in one of its buckets                     TARGET_SLOT
 *   not found, and its overflow cells are live       TARGET_OVERFLOW  (or else a key would be
 *                                                                     pardoned by coming again)
 *   a slot is empty, fresh, or taken from another    TARGET_NEW
 *   neither, or no span is left                      TARGET_OVERFLOW
 *
 * Two checks of one decision may meet in one state: the same key twice, or cells that both count
 * in. They are decided as if their costs were one; so are all that overflow under the same
 * parameters, whichever cells they have.
 */
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

/* Locks `lock` for this transaction; false: it is busy, release everything and begin again. */
bool target_lock(struct weir_table_owner *owner, uint32_t *lock);

/* The heap's lock comes after all others, so it may be waited for. False: owner->stuck. */
bool target_lock_heap(struct weir_table_owner *owner) __attribute__((warn_unused_result));

/* Takes the locks that an attempt is known to need, waiting for each, in address order. False:
 * owner->stuck. */
bool target_lock_wanted(struct weir_table_owner *owner) __attribute__((warn_unused_result));
void target_want(struct weir_table_owner *owner, uint32_t *lock);
void target_unlock_all(struct weir_table_owner *owner);

/* Resolves all checks to owner->targets. False: owner->lost or owner->no_room says why, and the
 * caller cancels and begins again; with owner->stuck it cancels and fails. */
bool target_resolve(struct weir_table_owner *owner, struct transaction *txn);

/* Reads the state of check `i` in target->bucket and ->slot, or makes a fresh one for it, and sees
 * to it that what the check may charge has room there. False: owner->no_room or owner->stuck. */
bool target_load(struct weir_table_owner *owner, const struct transaction *txn, uint32_t i,
                 struct target *target);
bool target_load_fresh(struct weir_table_owner *owner, const struct transaction *txn, uint32_t i,
                       struct target *target);

/* Bits of the slots of `bucket` that checks of this decision are decided on. */
uint32_t target_taken(const struct weir_table_owner *owner, const struct transaction *txn,
                      const struct table_bucket *bucket);

/* Empties a slot of two full buckets by moving its key to that key's other bucket, as a transaction
 * of its own. Returns whether that was possible, and sets place->bucket and ->slot. */
bool target_relocate(struct weir_table_owner *owner, const struct transaction *txn,
                     struct table_bucket *const pair[2], struct place *place);

enum target_charge {
    TARGET_CHARGE,        /* whether it is admitted or not */
    TARGET_CHARGE_DENIED, /* on_deny: charge */
    TARGET_REFUND,
};

/* Changes the state of check `i`. `single`: nothing else is written in this transaction. Returns
 * whether anything changed. */
bool target_charge(struct weir_table_owner *owner, const struct transaction *txn, uint32_t i,
                   enum target_charge how, bool single);

/* Puts the spans that this transaction did not use, or replaced, on the list to release. */
void target_drop_unused(struct weir_table_owner *owner, const struct transaction *txn);

/* Makes the transaction final, and releases its locks. False: owner->stuck, and all is taken back.
 */
bool target_finish(struct weir_table_owner *owner) __attribute__((warn_unused_result));

/* Takes everything back, and releases its locks. */
void target_cancel(struct weir_table_owner *owner);

/* Makes room in the heap for owner->need words of a state of owner->need_param, as far as others
 * may go for it: see make_room.c. The caller holds no lock. May end with owner->stuck. */
void target_make_room(struct weir_table_owner *owner, uint64_t now_ns);

#endif
