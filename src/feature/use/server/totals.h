/* SPDX-License-Identifier: Apache-2.0 */
/* Sums for Prometheus that only grow, made of what the workers' observers have seen: requests by
 * route, bursts that were used up by limit, and how long the denials of the log were asked to wait
 * by limit.
 *
 * Names are those of the rules. The first WEIR_TOTALS_NAMES that are seen have series; all others
 * count as "other", so that the number of series is bounded whatever the rules have.
 *
 * They are made of samples with weights (observer.h): while a worker decides no more than it
 * samples, they are exact, and else their expectation is. The sketches have room for
 * WEIR_USE_BURSTS limits and WEIR_USE_PLACES places. What a worker meets beyond that between two
 * collections counts as "other": bursts of a limit that made room, and requests of a route that
 * did, as allowed; those of a plan that made room may be among them.
 *
 * Memory: 34 KiB. Threads: one owner.
 */
#ifndef WEIR_FEATURE_USE_SERVER_TOTALS_H
#define WEIR_FEATURE_USE_SERVER_TOTALS_H

#include "engine/counters.h"
#include "engine/engine.h"
#include "feature/use/heavy.h"
#include "feature/use/server/denial.h"

#define WEIR_TOTALS_NAMES 50 /* and "other" */
#define WEIR_TOTALS_NAME_MAX 128

enum weir_totals_family { WEIR_TOTALS_ROUTES, WEIR_TOTALS_BURSTS, WEIR_TOTALS_WAITS, WEIR_TOTALS };

struct weir_totals_row {
    char name[WEIR_TOTALS_NAME_MAX]; /* "": not used */
    uint64_t count, denied;          /* ROUTES: requests; BURSTS, WAITS: `count` only */
    uint64_t sum_ms;                 /* WAITS */
    uint64_t waits[WEIR_RETRY_BOUNDS + 1];
};

/* All zero is empty. The row behind the last is "other". */
struct weir_totals {
    struct weir_totals_row rows[WEIR_TOTALS][WEIR_TOTALS_NAMES + 1];
};

/* What a batch has seen of bursts, and of places. */
void weir_totals_bursts(struct weir_totals *totals, const struct weir_heavy *batch);
void weir_totals_places(struct weir_totals *totals, const struct weir_heavy *batch);

void weir_totals_denial(struct weir_totals *totals, const struct weir_denial *denial);

/* The name of a row that is used; NULL: it is not. */
const char *weir_totals_name(const struct weir_totals *totals, enum weir_totals_family family,
                             unsigned row);

#endif
