/* SPDX-License-Identifier: Apache-2.0 */
/* Sweeping: frees the places of unused parameters while the region is in use.
 *
 * Parameters are needed by the processes that have pinned them (weir_table_intern), and by the
 * states that were made with them. A sweep notes the parameters that no process has pinned, walks
 * over all buckets, some at a time, and then drops those that no state has and that were not pinned
 * meanwhile. On its way,
 *
 *   a state that is fresh                      is removed;
 *   a cell, where its limit has pinned         is carried over to those, in units, as its next use
 *   parameters that it converts to             would do (not where limits share an account, which
 *                                              have no successor);
 *   any other, where no place is left          is evicted: its limit was removed or changed
 *
 * so that neither limits that change at every reload nor commands with ever new limits fill the
 * list.
 *
 * Threads: under table->mutex. Other processes may sweep at the same time; parameters are dropped
 * under the lock of interning. Memory: about 200 KiB while a sweep runs. */
#ifndef WEIR_TABLE_SWEEP_H
#define WEIR_TABLE_SWEEP_H

#include "table/params.h"

/* Continues a sweep by up to `buckets` buckets, or begins one; `pressure`: with evictions. The
 * caller holds table->mutex. Returns whether more is left; false also when there is no memory for a
 * sweep. */
bool sweep_step(struct weir_table *table, uint64_t now_ns, uint64_t buckets, bool pressure);

/* Empties the slots whose parameters were dropped, which an older weir could leave when two
 * processes swept at the same time. Only while no other process has the region open. Errors:
 * WEIR_ERR_MEMORY. */
int sweep_dropped(struct weir_table *table) __attribute__((warn_unused_result));

/* Ends a sweep that runs. The caller holds table->mutex, or is the only user. */
void sweep_close(struct weir_table *table);

#endif
