/* SPDX-License-Identifier: Apache-2.0 */
/* Submitting decisions: batches, and the short way for what is most common.
 *
 * A batch is taken in portions of up to AHEAD_MAX checks. For each of them the bucket is computed
 * and its two lines are asked for; when the lines are there, a look without the lock tells where
 * the key probably is, and lines of its second bucket are asked for where that is not the first.
 * Only then the decisions are made, in order. A caller that knows a hash earlier asks for the lines
 * of its bucket at once (weir_table_prefetch), one key after the other, while it does other work: a
 * processor waits for a dozen lines at a time, not for those of a whole portion.
 *
 * The short way is for one check on a packed cell that is found with its own parameters: one lock,
 * one store, no journal. It has three forms, from the most common to the most general: a cost of 1
 * of a plain limit, a cost of 1 of any bucket, and any cost of any cell. Several such checks go
 * their own short way (multi_check.c), all else the general way (transaction.c).
 */
#ifndef WEIR_TABLE_SUBMIT_H
#define WEIR_TABLE_SUBMIT_H

#include "table/table.h"

/* Decides a batch at one time: hashes are prefetched first, then each decision is made atomically,
 * in order. All checks carry interned limits; those of WEIR_OP_RELEASE, RESET and LOOK, which take
 * one check after the other, need only a hash. Fills outcomes, `verdict`, `delay_ns`, `now_ns`.
 * Never blocks longer than other owners hold their locks, nor, where the table has one, longer than
 * its patience for an owner that is stopped; never allocates.
 *
 * A decision for which that patience has ended keeps verdict WEIR_PENDING and has `error`
 * WEIR_ERR_BUSY; nothing was charged. (Under EACH and QUOTA, whose checks are requests of their
 * own, those before the one that failed were; of a RELEASE or RESET, they are ended.) */
void weir_table_submit(struct weir_table_owner *owner, uint64_t now_ns,
                       struct weir_decision *const *decisions, size_t count);

/* Asks the processor for the memory that a decision with these hashes will need, and does not wait.
 * Changes nothing: worth calling as soon as the hashes are known, if there is something else to do
 * before the decision is submitted. */
void weir_table_prefetch(const struct weir_table_owner *owner,
                         const struct weir_decision *decision);

#endif
