/* SPDX-License-Identifier: Apache-2.0 */
/* Overrides of callers in Redis: compiled once, shared by all workers, kept for ever.
 *
 * A million callers have a few dozen different overrides between them, whose limits checks point
 * at. As with limits of commands (server/adhoc/adhoc_limits.h) each different one is made known to
 * the table once and never dropped; a worker asks here only when it reads a caller, not when it
 * decides. What an override points at in the rules (its limit's name, a quota's calendar) is
 * copied, so that it outlives them, and a reload that changes none of it finds the same overrides
 * again.
 *
 * There is room for WEIR_OVERRIDES_KINDS of them, and while the table's list of limits, which rules
 * need too, is filled to less than three quarters.
 *
 * Memory: about 400 bytes a limit; a calendar of days 200 KB, of months 6 KB, 64 of them at most.
 * Threads: internally locked.
 */
#ifndef WEIR_FEATURE_IDENTITY_SERVER_OVERRIDES_H
#define WEIR_FEATURE_IDENTITY_SERVER_OVERRIDES_H

#include "feature/identity/rules/caller.h"
#include "store/store.h"

#define WEIR_OVERRIDES_KINDS 4096
#define WEIR_OVERRIDES_CALENDARS 64

struct weir_overrides;

/* `table` (NULL: there is none) is the one under the stores of all workers. `nodes` share the
 * store and decide alone where it fails, each on its part of a limit; 0 or 1: on all of it. Errors:
 * WEIR_ERR_MEMORY. */
int weir_overrides_open(struct weir_overrides **overrides, struct weir_table *table, uint32_t nodes)
    __attribute__((warn_unused_result));
/* No decision is made from them any more. NULL is allowed. */
void weir_overrides_close(struct weir_overrides *overrides);

/* Compiles what a caller has instead of a limit's rates (see weir_rules_override). What `override`
 * points at is kept until weir_overrides_close. `store` is the caller's own, `local` the table
 * beside it, or NULL. Errors: as weir_rules_override; WEIR_ERR_FULL; those of the store's prepare.
 */
int weir_overrides_find(struct weir_overrides *overrides, struct weir_store *store,
                        struct weir_store *local, const struct weir_rules *rules,
                        struct weir_bytes limit, struct weir_bytes text,
                        struct weir_override *override, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* How many there are. */
uint32_t weir_overrides_count(struct weir_overrides *overrides);

#endif
