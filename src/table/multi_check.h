/* SPDX-License-Identifier: Apache-2.0 */
/* The short path for a decision of several checks, or of one with a scale: all on packed cells
 * without flags, found with their own parameters, policy ALL. All other decisions take the general
 * path (transaction.h).
 *
 * It reads all states without the locks, tests them, and computes what they become. Then it locks
 * the buckets in address order; if a state has changed meanwhile, it tests all again. When all
 * admit, it writes them in place: the old words are in the owner's journal, whose count is set once
 * before and once after. */
#ifndef WEIR_TABLE_MULTI_CHECK_H
#define WEIR_TABLE_MULTI_CHECK_H

#include "table/region.h"

/* The most checks that are decided in this way. */
#define MULTI_CHECK_MAX 8

/* Decides. False: the decision needs the general path, and nothing has changed. */
bool multi_check_decide(struct weir_table_owner *owner, uint64_t now_ns,
                        struct weir_decision *decision, const struct lookup *ahead);

#endif
