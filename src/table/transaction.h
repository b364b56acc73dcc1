/* SPDX-License-Identifier: Apache-2.0 */
/* Transactions: what a decision means for the states of its checks.
 *
 *   policy ALL          one transaction for all its checks
 *   policy EACH, QUOTA  one for each check
 *
 * A transaction finds and locks all its states, tests them, and charges those that it must:
 *
 *   operation   verdict of a check            charged
 *   decide      its limit's                   if it admits and the request is allowed; with
 *                                             on_deny: charge whatever the outcome
 *   peek        its limit's                   never
 *   debit       allowed                       always
 *   refund      allowed                       the opposite, always
 *
 * Cost 0 is never charged. A shadow check never denies the request.
 */
#ifndef WEIR_TABLE_TRANSACTION_H
#define WEIR_TABLE_TRANSACTION_H

#include "table/target.h"

/* Decides in the general way. `ahead` has an entry for each check. decision->now_ns is set. */
void transaction_decide(struct weir_table_owner *owner, struct weir_decision *decision,
                        const struct lookup *ahead);

/* Locks and resolves the states of a transaction's checks, and begins again while a lock is busy.
 * False: owner->stuck. */
bool transaction_resolve(struct weir_table_owner *owner, struct transaction *txn)
    __attribute__((warn_unused_result));

#endif
