/* SPDX-License-Identifier: Apache-2.0 */
/* The short way for a decision of several checks: all on packed cells without flags, found with
 * their own parameters, policy ALL. All else goes the general way (transaction.c).
 *
 * All states are looked at without the locks, tested, and what they become is computed. Then the
 * buckets are locked in address order; where a state is not the same any more, all are tested
 * again. When all admit, they are written in place: the old words stand in the owner's journal,
 * whose count is set once before and once after.
 */
#ifndef WEIR_TABLE_MULTI_CHECK_H
#define WEIR_TABLE_MULTI_CHECK_H

#include "table/region.h"

/* The most checks that are decided in this way. */
#define SEVERAL_MAX 8

/* Decides; false: not so, and nothing has happened. */
bool multi_check_decide(struct weir_table_owner *owner, uint64_t now_ns,
                        struct weir_decision *decision, const struct lookup *ahead);

#endif
