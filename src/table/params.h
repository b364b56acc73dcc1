/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters: the compiled limits that the states of a region were made with.
 *
 * An open-addressing table. Looking up takes no lock; adding and dropping take the file lock of
 * LOCK_INTERN (processes) and the table's mutex (threads).
 *
 * Pins. Each process pins the parameters that its limits have: one bit for each in the row of the
 * table's own owner, so that pins end with their process, however it ends. An id keeps its meaning
 * while it is pinned, or while a state or a live overflow cell was made with it; then it may be
 * dropped and given to another limit (sweep.h). */
#ifndef WEIR_TABLE_PARAMS_H
#define WEIR_TABLE_PARAMS_H

#include "table/region.h"

/* Parameters by their index, id - 1. */
struct params_set {
    uint64_t words[(WEIR_TABLE_PARAMS_MAX + 63) / 64];
};

static inline void params_set_add(struct params_set *set, uint32_t index)
{
    set->words[index / 64] |= UINT64_C(1) << index % 64;
}

static inline bool params_set_has(const struct params_set *set, uint32_t index)
{
    return set->words[index / 64] >> index % 64 & 1;
}

/* The name of an account, from that of a limit (NULL: of commands); never 0. */
uint64_t params_account_name(const char *name);

/* Whether the account is one that unrelated limits share: that of commands, or that of limits which
 * came when the list was crowded. */
bool params_account_is_shared(uint64_t name);

/* Gives a limit its id, as the account of this name; pins nothing. Errors: as weir_table_intern. */
int params_intern(struct weir_table *table, struct weir_limit *limit, uint64_t name)
    __attribute__((warn_unused_result));

/* Whether limit->id names these parameters, whatever their account; and makes it name them, where
 * it names none, for the limit's own account. The caller holds the mutex; without it, the first
 * gives a hint. */
bool params_are(const struct weir_table *table, const struct weir_limit *limit);
void params_place(struct weir_table *table, const struct weir_limit *limit);

/* Keeps other processes from adding and dropping parameters; the caller holds table->mutex. Errors:
 * WEIR_ERR_IO. */
int params_lock(const struct weir_table *table) __attribute__((warn_unused_result));
void params_unlock(const struct weir_table *table);

/* The parameters that some live process has pinned. */
void params_pinned(const struct weir_table *table, struct params_set *pinned);

/* Pins an id for this process, and ends one pin. The caller holds table->mutex; to pin, also the
 * lock. */
void params_pin(struct weir_table *table, uint16_t id);
void params_unpin(struct weir_table *table, uint16_t id);

/* Whether a sweep runs for parameters: then their states stay in their buckets. `sweeper`
 * says whose: the last one that has begun, which alone may drop them; 0: none. All are
 * read-modify-writes, so that one of two things holds: an owner that asks under the lock of a
 * bucket sees that they are swept; or the sweep, which looks at that bucket later, sees the lock.
 */
static inline void params_set_swept(struct table_param *param, uint32_t sweeper)
{
    __atomic_exchange_n(&param->swept, sweeper, __ATOMIC_ACQ_REL);
}

static inline bool params_is_swept(struct weir_table *table, uint16_t id)
{
    return region_has_params(table, id) &&
           __atomic_fetch_or(&table->params[id - 1].swept, 0, __ATOMIC_ACQ_REL) != 0;
}

/* Whether the parameters of an id were dropped and their place is still free. */
bool params_is_dropped(const struct weir_table *table, uint16_t id);

/* Clears an owner's pins: its slot has a new holder. */
void params_forget_pins(struct weir_table *table, uint32_t owner);

/* Frees the place of unused parameters. The caller holds the lock. */
void params_drop(struct weir_table *table, struct table_param *param);

/* Recounts the live parameters, of each account and of all, which a crash may have left wrong. Only
 * while no other process has the region open. */
void params_count(struct weir_table *table);

/* Whether all live parameters are as they were written. */
bool params_consistent(const struct weir_table *table);

#endif
