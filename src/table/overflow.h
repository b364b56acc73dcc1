/* SPDX-License-Identifier: Apache-2.0 */
/* Overflow: shared cells for keys that the table has no room for.
 *
 * Parameters whose keys overflow get two rows of cells, each one a state of those parameters. A key
 * counts in one cell of each row,
 *
 *   row 0    by the hash of the whole key
 *   row 1    by the network of its address: the /32 of IPv6, the /16 of IPv4;
 *            by another hash of the whole key where it has no address
 *
 * and is admitted iff one of its two cells admits. What is admitted is charged to both; where one
 * does not admit it, it is filled (cell_fill). So each cell holds at least what each of its keys
 * has used, as in a count-min sketch with conservative update (Estan and Varghese, "New directions
 * in traffic measurement and accounting", 2002): overflow denies early, never late. A network of
 * many keys fills row 0 for all keys, but row 1 for its own keys only.
 *
 * A key stays there while both its cells are live, even if a slot has become free, since a new
 * state would forget what it has used. Refunds, releases and resets do not change cells, because
 * other keys may have charged them. States that are spans are replaced by a sliding_window that is
 * strict, of the same N and W: for concurrency W is the life of a lease, whenever it ends.
 *
 * Reports are estimates: the most that the key may use, and the latest time at which it is admitted
 * if no other key uses its cells.
 *
 * Memory: cells come in chunks of 2 KiB from a part of the region that is a 32nd of it. The first
 * key that overflows takes as many as its account's share has, 255 at most: 8,160 cells in row 0,
 * and three times as many in row 1, which tells networks apart when row 0 is full. A chunk is free
 * again when all cells of its parameters are fresh. If no chunk is free, each row has one cell, in
 * the parameters themselves. If parameters name chunks that the region does not have, because
 * another program has overwritten the file while it was in use, each row begins anew with one fresh
 * cell.
 *
 * Locks: the lock of the parameters guards their cells. chunks_lock, which an owner may wait for
 * while it holds that, guards which parameters have which chunks, and the list of those that have
 * any, so that taking chunks does not walk all parameters. Its holder only tries other locks. */
#ifndef WEIR_TABLE_OVERFLOW_H
#define WEIR_TABLE_OVERFLOW_H

#include "core/scale.h"
#include "table/region.h"

/* The limit that cells of these parameters are states of: themselves, or, in `room`, the
 * replacement for a span. */
const struct weir_limit *overflow_limit(const struct weir_limit *limit, struct weir_limit *room);

/* Fills `counted` with what a check is here: its limit as overflow_limit has it, in `room`. */
void overflow_check(const struct weir_check *check, struct weir_limit *room,
                    struct weir_check *counted);

/* Whether some cell of the parameters may be live. Without their lock a hint; for a key whose
 * buckets are locked it is reliable, since no other owner can make that key overflow meanwhile. */
static inline bool overflow_is_live(const struct table_param *param, uint64_t now_ns)
{
    return __builtin_expect(__atomic_load_n(&param->until_ns, __ATOMIC_RELAXED) > now_ns, 0);
}

/* If all cells are fresh, makes fresh rows with as many cells as are available. The caller holds
 * the lock of the parameters. False: owner->stuck. */
bool overflow_open(struct weir_table_owner *owner, struct table_param *param, uint64_t now_ns)
    __attribute__((warn_unused_result));

/* Rebuilds the list of the parameters that have chunks. Only while no other process has the region
 * open. */
void overflow_list_holders(struct weir_table *table);

/* Sets the two cells of a key. The caller holds the lock of the parameters. */
void overflow_find(const struct weir_table *table, struct table_param *param,
                   const struct weir_check *check, uint32_t network,
                   struct weir_cell *cells[OVERFLOW_ROWS]);

/* Whether both cells are live. */
bool overflow_holds(const struct weir_limit *limit, struct weir_cell *const cells[OVERFLOW_ROWS],
                    uint64_t now_ns);

/* Whether one of the cells admits the load at the scale of a check (of overflow_check). */
bool overflow_test(const struct weir_check *check, struct weir_cell *const cells[OVERFLOW_ROWS],
                   uint64_t now_ns, const struct scale_load *load, uint64_t *delay_ns);

/* A charge to both cells: the cost of a check of overflow_check. */
struct overflow_charge {
    const struct weir_check *check;
    uint64_t now_ns;
    bool debit;    /* also beyond the capacity: by at most `debt` */
    uint64_t debt; /* WEIR_NEVER: without bound */
};

/* Charges through the undo journal. Returns whether anything changed. */
bool overflow_charge(struct weir_table_owner *owner, struct table_param *param,
                     struct weir_cell *const cells[OVERFLOW_ROWS],
                     const struct overflow_charge *charge);

/* The most that a debit may charge to either cell; see core/debit.h. */
uint64_t overflow_debit_room(const struct weir_check *check,
                             struct weir_cell *const cells[OVERFLOW_ROWS], uint64_t now_ns,
                             uint64_t debt);

/* Fills outcome->report and ->next_ns from outcome->verdict. */
void overflow_describe(const struct weir_check *check, struct weir_cell *const cells[OVERFLOW_ROWS],
                       uint64_t now_ns, struct weir_outcome *outcome);

/* Whether the cells of all parameters are valid states, in chunks that no other parameters have. */
bool overflow_consistent(const struct weir_table *table);

#endif
