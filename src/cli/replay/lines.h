/* SPDX-License-Identifier: Apache-2.0 */
/* Going through a trace: every line to the caller, malformed ones reported on stderr.
 *
 * The lines of an access log are given a second at a time, spread over it (second.h).
 *
 * The first ten malformed lines are reported with file, line and reason; of the others the number.
 */
#ifndef WEIR_CLI_REPLAY_LINES_H
#define WEIR_CLI_REPLAY_LINES_H

#include "cli/replay/trace.h"

#include <weir/error.h>

#define REPLAY_MALFORMED 1

/* Takes a line: 0; REPLAY_MALFORMED, with `reason`; or a negative error, which ends it all. */
typedef int (*replay_lines_fn)(void *context, const struct replay_line *line,
                               struct weir_reason *reason);

/* Gives all lines to `take`, and counts the malformed ones. Returns 0, or -1 after telling why. */
int replay_lines_each(struct replay_trace *trace, replay_lines_fn take, void *context,
                      uint64_t *malformed) __attribute__((warn_unused_result));

#endif
