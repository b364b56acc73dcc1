/* SPDX-License-Identifier: Apache-2.0 */
/* Submitting decisions: batches, and a short path for the most common ones.
 *
 * A batch is taken in portions of up to AHEAD_MAX checks. For each check it computes the bucket and
 * prefetches its two lines. When the lines are there, it reads without the lock where the key
 * probably is, and prefetches the second bucket if the key is not in the first. Then it makes the
 * decisions, in order. A caller that knows a hash earlier prefetches the lines of its bucket at
 * once (weir_table_prefetch), one key after the other, while it does other work: a processor waits
 * for a dozen lines at a time, not for those of a whole portion.
 *
 * The short path is for one check on a packed cell that is found with its own parameters: one lock,
 * one store, no journal. It has three forms, from the most common to the most general: a cost of 1
 * of a plain limit, a cost of 1 of any bucket, and any cost of any cell. Several such checks go
 * their own short way (multi_check.c), all else the general path (transaction.c). */
#ifndef WEIR_TABLE_SUBMIT_H
#define WEIR_TABLE_SUBMIT_H

#include "table/table.h"

/* Decides a batch at one time: hashes are prefetched first, then each decision is made atomically,
 * in order. All checks carry interned limits; those of WEIR_OP_RELEASE, RESET and LOOK, which take
 * one check after the other, need only a hash. Fills outcomes, `verdict`, `delay_ns`, `now_ns`.
 * Waits only for locks that other owners hold, and for a stopped owner at most for the table's
 * patience (if it has one); never allocates.
 *
 * A decision for which that patience has ended keeps verdict WEIR_PENDING and has `error`
 * WEIR_ERR_BUSY; nothing was charged. (Under EACH and QUOTA each check is a request of its own:
 * those before the failed one were charged. Those of a RELEASE or RESET were done.) */
void weir_table_submit(struct weir_table_owner *owner, uint64_t now_ns,
                       struct weir_decision *const *decisions, size_t count);

/* Prefetches the memory that a decision with these hashes will need, without waiting. Changes
 * nothing. Worth calling as soon as the hashes are known, if the caller has other work before it
 * submits the decision. */
void weir_table_prefetch(const struct weir_table_owner *owner,
                         const struct weir_decision *decision);

#endif
