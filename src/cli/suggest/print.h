/* SPDX-License-Identifier: Apache-2.0 */
/* What `weir replay --suggest` prints: the rules with their reasons, and histograms. */
#ifndef WEIR_CLI_SUGGEST_PRINT_H
#define WEIR_CLI_SUGGEST_PRINT_H

#include "cli/suggest/plan.h"

/* Prints the rules to `out`. */
void suggest_print_rules(const struct suggest_trace *trace, const struct suggest_plan *plan,
                         FILE *out);

/* Prints a histogram for each rate of each limit. */
void suggest_print_histograms(const struct suggest_plan *plan, FILE *out);

/* Prints what the file denied on its own trace, as comments at its end; `measured` NULL: it was not
 * run. */
void suggest_print_measured(const struct replay_measured *measured, FILE *out);

#endif
