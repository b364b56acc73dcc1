/* SPDX-License-Identifier: Apache-2.0 */
/* What a replay prints at its end: which keys would have been limited. */
#ifndef WEIR_CLI_REPLAY_REPORT_H
#define WEIR_CLI_REPLAY_REPORT_H

#include <stdint.h>
#include <stdio.h>

#include "cli/replay/tally.h"
#include "engine/engine.h"
#include "rules/rules.h"
#include "table/table.h"

/* Columns of a limit's name before the numbers are pushed to the right. */
#define REPLAY_NAME_WIDTH 24

struct replay_totals {
    uint64_t lines;             /* not blank, malformed ones included: the n of --decisions */
    uint64_t malformed;         /* lines that are no request */
    uint64_t allowed, denied;   /* requests that were decided */
    uint64_t dry_runs;          /* requests that only peeked; in neither of these */
    uint64_t backwards;         /* lines whose time was before the greatest seen so far */
    uint64_t first_ns, last_ns; /* virtual time of the first and the last request */
};

/* Prints the totals: the first lines of a report. */
void replay_report_totals(FILE *out, const struct replay_totals *totals);

/* Prints a line for each limit of `rules`, how much of its denials took effect where not all did,
 * and the `top` most denied keys of each. */
void replay_report_print(FILE *out, const struct weir_rules *rules,
                         const struct replay_tally *tally, const struct weir_engine *engine,
                         uint64_t top);

/* Says that states were lost when they were, so that the results are not exact. Returns whether
 * they were. */
bool replay_report_losses(FILE *out, const struct weir_table_stats *stats);

#endif
