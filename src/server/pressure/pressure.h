/* SPDX-License-Identifier: Apache-2.0 */
/* Keys that find no room in the table: which limits have evicted states, or counted keys in
 * overflow (docs/state.md), since when, and what of it is to be logged. Made from the table's
 * counters, once a second, so that nothing on the way of a decision knows of it.
 *
 * An account (a limit, see table/account.h) is reported when it has its first eviction, or its
 * first overflow, and then at most once a minute, with what has come since. At most
 * WEIR_PRESSURE_LINES accounts are reported in a minute, those with most; all others that are due
 * are reported together, as one, once a minute. Events before the first look (in a state file) are
 * not reported.
 *
 * Memory: 88 bytes for each place in the table's list of limits, 16,384 at most. Threads: one
 * owner.
 */
#ifndef WEIR_SERVER_PRESSURE_PRESSURE_H
#define WEIR_SERVER_PRESSURE_PRESSURE_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/error.h>

#include "table/table.h"

#define WEIR_PRESSURE_LINES 10                       /* in a minute, and one for all others */
#define WEIR_PRESSURE_AGAIN_NS UINT64_C(60000000000) /* of one account */
#define WEIR_PRESSURE_BUSIEST 3                      /* accounts that a summary names */

struct weir_pressure;

/* Errors: WEIR_ERR_MEMORY. */
int weir_pressure_open(struct weir_pressure **pressure, uint32_t accounts)
    __attribute__((warn_unused_result));
void weir_pressure_close(struct weir_pressure *pressure);

/* Takes note of the counters of all accounts at a time; `accounts` has as many as were opened with,
 * in the same places each time. Fills what is to be logged: `lines`, most first; and as one the
 * `more` accounts that are due as well. */
struct weir_pressure_report {
    uint32_t count, more;
    struct weir_table_account lines[WEIR_PRESSURE_LINES];
    struct weir_table_limit_stats others; /* of `more` */
};
void weir_pressure_look(struct weir_pressure *pressure, uint64_t now_ns,
                        const struct weir_table_account *accounts,
                        struct weir_pressure_report *report);

/* What has come in this minute and the one before, as of the last look. */
struct weir_pressure_recent {
    struct weir_table_limit_stats all;
    uint32_t accounts; /* that have any */
    uint32_t count;    /* of those the busiest, most first */
    struct weir_table_account busiest[WEIR_PRESSURE_BUSIEST];
};
void weir_pressure_recent(const struct weir_pressure *pressure,
                          struct weir_pressure_recent *recent);

#endif
