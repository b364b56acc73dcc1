/* SPDX-License-Identifier: Apache-2.0 */
/* One node's part of a limit: what it decides by itself, in its own table, while the store that it
 * shares with others cannot be asked (`on_store_error: local`).
 *
 * With `nodes` nodes, N and B are divided by it, rounded down, so that all nodes together admit no
 * more than the limit, but at least 1: a node that admits nothing would be no better than `closed`.
 * So with N (of buckets: B) below `nodes`, all nodes together admit up to `nodes`. A bucket's rate
 * is divided exactly, by making its window longer: 7/min among 3 is 7/3min each.
 *
 * Threads: pure.
 */
#ifndef WEIR_RULES_DIVISION_H
#define WEIR_RULES_DIVISION_H

#include <weir/limit.h>

/* As many as may share a store. */
#define WEIR_NODES_MAX 1000

/* Fills `part`, compiled anew, with `limit`'s name; 1 <= nodes <= WEIR_NODES_MAX. */
void weir_limit_divide(const struct weir_limit *limit, uint32_t nodes, struct weir_limit *part);

#endif
