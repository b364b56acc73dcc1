/* SPDX-License-Identifier: Apache-2.0 */
/* The undo journal: what a transaction has overwritten, so that it can be taken back.
 *
 * A transaction writes in place, under locks that keep everybody else away. Before each write the
 * old word goes to the journal of its owner. The transaction is finished by one store, which
 * empties the journal; until then its owner, or whoever finds it dead, can take everything back,
 * newest first, as often as it takes. A transaction that is one store by itself needs none of this.
 *
 * Words are 8 or 4 bytes, naturally aligned. The order of stores is what counts and is kept by
 * compiler barriers (see layout.h).
 */
#ifndef WEIR_TABLE_UNDO_H
#define WEIR_TABLE_UNDO_H

#include "table/region.h"

#define UNDO_BARRIER() __atomic_signal_fence(__ATOMIC_SEQ_CST)

/* Remembers a word that is about to be written. */
void undo_save64(struct weir_table_owner *owner, const uint64_t *word);
void undo_save32(struct weir_table_owner *owner, const uint32_t *word);

/* The same for a whole slot of a bucket, and for its parameters alone. */
void undo_save_slot(struct weir_table_owner *owner, const struct table_bucket *bucket, uint32_t i);
void undo_save_param(struct weir_table_owner *owner, const struct table_bucket *bucket, uint32_t i);

/* Makes everything since the last finish final, or takes it back. */
void undo_finish(struct weir_table_owner *owner);
void undo_cancel(struct weir_table_owner *owner);

/* Takes back what a dead owner left. */
void undo_take_back(struct weir_table *table, struct table_owner_slot *slot);

/* Whether every entry of a journal names a word inside the region. */
bool undo_valid(const struct weir_table *table, const struct table_owner_slot *slot);

#endif
