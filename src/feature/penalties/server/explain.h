/* SPDX-License-Identifier: Apache-2.0 */
/* What penalties would make of a request, for `weir explain` and the page: which of them its denial
 * or its outcome would be a strike of, whose value that is, where the value is on the ladder, and
 * what comes next.
 *
 * The steps are read from the history of standing beside the server that writes it. Steps in Redis
 * are not read.
 *
 * Threads: reads only.
 */
#ifndef WEIR_FEATURE_PENALTIES_SERVER_EXPLAIN_H
#define WEIR_FEATURE_PENALTIES_SERVER_EXPLAIN_H

#include "feature/penalties/rules/strikes.h"
#include "feature/standing/rules/match.h"
#include "rules/match/checks.h"
#include "server/text/print.h"

/* What strikes a request may turn out to be. */
struct weir_explained_strikes {
    struct weir_caller_standing caller;
    struct weir_strikes strikes;
    struct weir_scratch scratch;
    struct weir_check checks[WEIR_CHECKS_MAX];
};

/* Finds them. `query` is that of the request, whose results are not touched. Errors: as
 * weir_rules_checks. */
int weir_explain_find_strikes(struct weir_explained_strikes *found,
                              const struct weir_rules_query *query)
    __attribute__((warn_unused_result));

/* Prints what was found, where the rules have penalties and query->map is given. `decision` has the
 * request's checks. Waits for the disk. */
void weir_explain_penalties(const struct weir_print *to, const struct weir_rules_query *query,
                            const struct weir_explained_strikes *found,
                            const struct weir_decision *decision);

#endif
