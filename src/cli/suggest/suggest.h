/* SPDX-License-Identifier: Apache-2.0 */
/* `weir replay --suggest`: limits for recorded traffic, as a rules file.
 *
 * A pass over the trace, in its own time (the greatest seen so far), counts what each key asked for
 * on each route and on all of them (demand.h). From that a plan is made: which
 * routes have a limit, and its rates by a percentile over keys and a margin
 * (plan.h). Then the file is run on the trace, and says at its end what it denied.
 * The rules go to standard output with comments that say who would have been denied at this and
 * other percentiles, a histogram for each limit to standard error. The same trace always gives the
 * same output.
 *
 * A trace that comes through a pipe on standard input is kept in a temporary file, so that it can
 * be read again. Where no request has the default key (a log of one client), all are counted
 * together.
 *
 * Memory: of keys, see demand.h; routes, at most ROUTES_MAX, 1.5 KB each.
 */
#ifndef WEIR_CLI_SUGGEST_SUGGEST_H
#define WEIR_CLI_SUGGEST_SUGGEST_H

#include <stdio.h>

#include "cli/replay/replay.h"
#include "cli/suggest/demand.h"
#include "cli/suggest/route.h"

#define SUGGEST_PERMILLE 990 /* the 99th percentile */
#define SUGGEST_MARGIN 50    /* percent: what the next log has is not in this one */
#define SUGGEST_KEY "client.ip/64"
#define SUGGEST_ROUTES 20 /* as many as somebody reads */

/* Reads the traces and suggests. Returns the exit status. */
int replay_suggest(const struct replay_options *options);

/* --- What the trace was: between reading and printing ------------------------------------------
 */

#define SUGGEST_TOP 3        /* keys that are named */
#define SUGGEST_TEXT_MAX 120 /* of a key's text; the rest is cut off */

struct suggest_top {
    uint64_t hash;
    uint32_t most;
    uint32_t size;
    char text[SUGGEST_TEXT_MAX];
};

/* What a route's limit is about; of everything, the first. */
struct suggest_about {
    uint64_t requests;
    struct suggest_top top[SUGGEST_WINDOWS][SUGGEST_TOP]; /* most first */
};

struct suggest_totals {
    uint64_t requests, malformed, keyless, routeless, first_ns, last_ns;
    bool has_costs; /* some request cost something else than 1 */
};

/* The route of `about[1 + i]` is number i. */
struct suggest_trace {
    const struct replay_options *options;
    const char *key; /* "": all are counted together */
    const struct suggest_demand *demand;
    const struct suggest_routes *routes;
    const struct suggest_about *about;
    struct suggest_totals totals;
};

#endif
