/* SPDX-License-Identifier: Apache-2.0 */
/* Which limits are suggested, and their rates: between counting (demand.h) and
 * printing (print.c).
 *
 * Routes: those with most requests, if they have SUGGEST_REQUESTS_MIN, but neither static files (by
 * their extension) nor pages: reads that a key asks for fewer than SUGGEST_PAGE_MIN times an hour.
 * All these count in `everything` only.
 *
 * Rates: of each window the percentile over keys, with the margin on top and rounded up to two
 * digits. The percentile is of the file as a whole: so few keys may be above any rate of any limit
 * as it says. So each limit is made by a higher one, the lowest that does so for all together.
 *
 * Memory: 12 bytes for each route and key that is counted.
 */
#ifndef WEIR_CLI_SUGGEST_PLAN_H
#define WEIR_CLI_SUGGEST_PLAN_H

#include "cli/suggest/suggest.h"

#define SUGGEST_PAGE_MIN 10
#define SUGGEST_REQUESTS_MIN 50 /* fewer say nothing of what is usual */
#define SUGGEST_RATE_MIN 5      /* with a margin: of fewer in a window, one more is chance */

struct suggest_limit {
    const struct suggest_about *about;
    const struct suggest_route *route; /* NULL: everything */
    uint32_t number;                   /* of its keys' route in the demand; 0: everything */
    char name[ROUTE_NAME_MAX + 1];
    size_t keys;
    uint32_t *sorted[SUGGEST_WINDOWS]; /* what keys asked for, ascending */
    uint32_t rate[SUGGEST_WINDOWS];
    bool chosen[SUGGEST_WINDOWS];
};

struct suggest_plan {
    uint32_t count;              /* of the limits; the last is that of everything */
    uint32_t files, pages, rare; /* routes left out */
    uint32_t permille;           /* the percentile of each limit */
    struct suggest_limit limits[1 + ROUTES_MAX];
};

/* NULL: no memory. */
struct suggest_plan *suggest_plan_make(const struct suggest_trace *trace);
void suggest_plan_free(struct suggest_plan *plan);

/* Nearest rank: the smallest number that so many of a thousand keys of a limit do not pass. */
uint32_t suggest_percentile(const struct suggest_limit *limit, int w, uint32_t permille);

/* Keys of a limit that asked for more than a rate: it would have denied each of them at least once.
 */
size_t suggest_over(const struct suggest_limit *limit, int w, uint32_t rate);

#endif
