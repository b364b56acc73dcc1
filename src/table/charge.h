/* SPDX-License-Identifier: Apache-2.0 */
/* Charging: what a check changes in the state that it is decided on (target.h).
 *
 * States are written in place, through the undo journal (undo.h) where a transaction has more than
 * one store. The locks of all targets are held until the transaction ends.
 */
#ifndef WEIR_TABLE_CHARGE_H
#define WEIR_TABLE_CHARGE_H

#include "table/target.h"

enum charge_kind {
    CHARGE_COST,   /* the cost of the check, whether it is admitted or not */
    CHARGE_DENIED, /* on_deny: charge */
    CHARGE_REFUND,
};

/* Changes the state of check `i`. `single`: nothing else is written in this transaction. Returns
 * whether anything changed. */
bool charge_check(struct weir_table_owner *owner, const struct transaction *txn, uint32_t i,
                  enum charge_kind kind, bool single);

/* Writes target->cell, the state of `limit`, to its span or slot. */
void charge_store_cell(struct weir_table_owner *owner, const struct weir_limit *limit,
                       struct target *target, bool single);

/* Puts the spans that this transaction has allocated and not used on the list to release. */
void charge_drop_unused(struct weir_table_owner *owner, const struct transaction *txn);

#endif
