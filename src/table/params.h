/* Parameters: the compiled limits that the states of a region were made with.
 *
 * An open-addressing table that only grows while anybody has the region open: an id never changes
 * its meaning. Looking up takes no lock; adding takes the file lock of LOCK_INTERN (processes) and
 * the table's mutex (threads). Whoever opens a file alone drops the parameters that no state has.
 */
#ifndef WEIR_TABLE_PARAMS_H
#define WEIR_TABLE_PARAMS_H

#include "table/region.h"

/* As weir_table_intern, for the account of this name. */
int params_intern(struct weir_table *table, struct weir_limit *limit, uint64_t name)
    __attribute__((warn_unused_result));

/* Forgets parameters that no slot names and whose overflow cells are fresh. Only while nobody else
 * has the region open. */
void params_sweep(struct weir_table *table, uint64_t now_ns);

/* Whether everything that is live is what was once written. */
bool params_consistent(const struct weir_table *table);

#endif
