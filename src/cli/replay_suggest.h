/* `weir replay --suggest`: limits for recorded traffic, as a rules file.
 *
 * One pass over the trace, in its own time (the greatest seen so far), counts what each key asked
 * for on each route and on all of them (replay_suggest_demand.h). A limit is suggested for the
 * routes with most requests and for everything: the percentile over keys of the most that one key
 * asked for in any second, minute and hour, as far as each of them says anything beyond the others.
 * The rules go to standard output with comments that say who would have been denied at this and
 * other percentiles, a histogram for each limit to standard error. The same trace always gives the
 * same output.
 *
 * Memory: of keys, see replay_suggest_demand.h; routes, at most ROUTES_MAX, 1.5 KB each.
 */
#ifndef WEIR_CLI_REPLAY_SUGGEST_H
#define WEIR_CLI_REPLAY_SUGGEST_H

#include <stdio.h>

#include "cli/replay.h"
#include "cli/replay_suggest_demand.h"
#include "cli/replay_suggest_route.h"

#define SUGGEST_PERMILLE 990 /* the 99th percentile */
#define SUGGEST_KEY "client.ip"
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
    const struct suggest_demand *demand;
    const struct suggest_routes *routes;
    const struct suggest_about *about;
    struct suggest_totals totals;
};

/* Prints the rules to `out` and histograms to `terminal`. Returns 0 or WEIR_ERR_MEMORY. */
int suggest_print(const struct suggest_trace *trace, FILE *out, FILE *terminal)
    __attribute__((warn_unused_result));

#endif
