/* SPDX-License-Identifier: Apache-2.0 */
/* Going through a trace: every request to the caller, malformed lines reported on stderr, progress
 * on a terminal, and an early end at Ctrl-C.
 *
 * The first ten malformed lines are reported with file, line and reason; of the others the number.
 */
#ifndef WEIR_CLI_REPLAY_LINES_H
#define WEIR_CLI_REPLAY_LINES_H

#include "cli/replay/trace/trace.h"

#include <weir/error.h>

#define REPLAY_MALFORMED 1

/* Takes a line that is a request or malformed: 0; REPLAY_MALFORMED, with `reason`; or a negative
 * error, which ends it all. */
typedef int (*replay_lines_fn)(void *context, const struct replay_line *line,
                               struct weir_reason *reason);

struct replay_lines {
    replay_lines_fn take;
    void *context;
    const char *doing;  /* for the line of progress: "reading" */
    uint64_t lines_max; /* ends after so many; 0: at the end of the trace */
    uint64_t malformed; /* out */
    uint64_t read;      /* out: lines that are not blank, of any kind */
    bool stopped;       /* out: Ctrl-C came first */
};

/* Gives all lines to `take`. Returns 0, or -1 after telling why. */
int replay_lines_each(struct replay_trace *trace, struct replay_lines *lines)
    __attribute__((warn_unused_result));

#endif
