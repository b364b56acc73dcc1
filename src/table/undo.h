/* SPDX-License-Identifier: Apache-2.0 */
/* The undo journal: what a transaction has overwritten, so that it can be undone.
 *
 * A transaction writes in place, under locks that exclude all other owners. Before each write the
 * old word goes to the journal of its owner. One store, which empties the journal, commits the
 * transaction; until then its owner, or any owner that finds it dead, can undo everything, newest
 * first, and repeat that after a crash. A transaction of a single store needs no journal.
 *
 * Words are 8 or 4 bytes, naturally aligned. Compiler barriers keep the order of stores, on which
 * all depends (see layout.h). */
#ifndef WEIR_TABLE_UNDO_H
#define WEIR_TABLE_UNDO_H

#include "table/region.h"

#define UNDO_BARRIER() __atomic_signal_fence(__ATOMIC_SEQ_CST)

/* Saves a word that is about to be written. False, only when the journal already has UNDO_OWN
 * entries: the spill area, in which it continues, cannot be locked, or is full (of a damaged file).
 * The word must not be written then. owner->stuck and owner->unsaved are set, no later word is
 * saved either, and the transaction must be cancelled. A caller that writes at most UNDO_OWN words
 * in one transaction need not check. */
bool undo_save64(struct weir_table_owner *owner, const uint64_t *word);
bool undo_save32(struct weir_table_owner *owner, const uint32_t *word);

/* The same for a whole slot of a bucket, and for its parameters alone. */
bool undo_save_slot(struct weir_table_owner *owner, const struct table_bucket *bucket, uint32_t i);
bool undo_save_param(struct weir_table_owner *owner, const struct table_bucket *bucket, uint32_t i);

/* Commits everything since the last finish. False: a word was not saved, and all is undone. */
bool undo_finish(struct weir_table_owner *owner);

/* Undoes everything since the last finish. */
void undo_cancel(struct weir_table_owner *owner);

/* Undoes what a dead owner left. */
void undo_take_back(struct weir_table *table, struct table_owner_slot *slot);

/* Whether every entry of a journal names a word inside the region. */
bool undo_valid(const struct weir_table *table, const struct table_owner_slot *slot);

#endif
