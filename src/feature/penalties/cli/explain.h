/* SPDX-License-Identifier: Apache-2.0 */
/* What penalties would make of a request, for `weir explain`: which of them its denial or its
 * outcome would be a strike of, whose value that is, where the value is on the ladder, and what
 * comes next.
 *
 * The steps are read from the history of standing beside the server that writes it. Steps in Redis
 * are not read.
 */
#ifndef WEIR_FEATURE_PENALTIES_CLI_EXPLAIN_H
#define WEIR_FEATURE_PENALTIES_CLI_EXPLAIN_H

#include "rules/match/checks.h"

/* Prints them. `query` is that of the request, with the map of standing; its scratch is not
 * touched. `decision` has its checks. */
void cli_explain_penalties(const struct weir_rules_query *query,
                           const struct weir_decision *decision);

#endif
