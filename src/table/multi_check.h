/* SPDX-License-Identifier: Apache-2.0 */
/* The short way for a decision of several checks: all on packed cells without flags, found with
 * their own parameters, policy ALL. All else goes the general way (transaction.c).
 *
 * The buckets are locked in address order, all states tested, and when all admit, written in place:
 * the old words stand in the owner's journal, whose count is set once before and once after.
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
