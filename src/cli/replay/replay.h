/* SPDX-License-Identifier: Apache-2.0 */
/* `weir replay`: a recorded trace through the rules, in virtual time.
 *
 * The same engine, rules, algorithms and table as the server's, with the trace as the only clock: t
 * is the greatest time seen so far. Nothing is random (keys are hashed with a fixed secret), so
 * that a replay always gives the same result. Unlike a server it has a table of its own in
 * private memory, and what it counts keys with grows with their number (tally.h).
 */
#ifndef WEIR_CLI_REPLAY_REPLAY_H
#define WEIR_CLI_REPLAY_REPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/replay/trace/clients.h"

struct replay_options {
    const char *config;
    const char *decisions; /* NULL: none; "-": standard output, and the report goes to stderr */
    const char *const *traces;
    size_t trace_count;
    int format; /* as replay_source_open */
    struct replay_proxies proxies;
    bool disorder;        /* lines that are not in the order of time are allowed */
    uint64_t lines_max;   /* ends after so many; 0: at the end */
    uint64_t state_bytes; /* 0: as the trace may need (state.h) */
    uint64_t keys_max, top;
    bool compare, skip_bad;
    bool utc; /* times are printed in UTC */
    /* --suggest: suggest/suggest.h */
    bool suggest;
    uint32_t suggest_permille, suggest_margin; /* margin: in percent */
    const char *suggest_key;
    bool suggest_key_given; /* false: it is the default */
    uint64_t suggest_routes;
};

/* What the limits of a file denied on a trace. */
struct replay_measured {
    uint64_t requests, denied;  /* that the last limit applied to */
    uint64_t keys, denied_keys; /* of the last limit's: denied at least once, by any limit */
    bool exact;                 /* the state table was large enough, and all keys were counted */
};

/* Replays with rules from memory, quietly. Malformed lines are skipped. Returns 0, or -1 after
 * printing why. */
int replay_measure(const struct replay_options *options, const char *rules, size_t size,
                   struct replay_measured *measured);

/* Replays and reports. Returns the exit status. */
int replay_run(const struct replay_options *options);

#endif
