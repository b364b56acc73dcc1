/* SPDX-License-Identifier: Apache-2.0 */
/* see lines.h */
#include "cli/replay/lines.h"

#include <inttypes.h>
#include <string.h>

#include "cli/options.h"
#include "cli/replay/progress.h"
#include "cli/replay/stop.h"

/* Malformed lines that are reported one by one; the others are counted. */
#define MALFORMED_TOLD_MAX 10

/* Gives one line to who asked. Returns 0 or -1 after telling why. */
static int give(struct replay_lines *lines, const struct replay_line *line,
                struct replay_progress *progress)
{
    struct weir_reason reason;
    int taken;

    reason.text[0] = '\0';
    taken = lines->take(lines->context, line, &reason);
    if (taken < 0) {
        replay_progress_clear(progress);
        cli_error("%s:%" PRIu64 ": %s", line->file, line->number, weir_error_text(taken));
        return -1;
    }
    if (taken == REPLAY_MALFORMED && lines->malformed++ < MALFORMED_TOLD_MAX) {
        replay_progress_clear(progress);
        cli_error("%s:%" PRIu64 ": %s", line->file, line->number, reason.text);
    }
    return 0;
}

static int each(struct replay_trace *trace, struct replay_lines *lines,
                struct replay_progress *progress)
{
    struct replay_line line;
    struct weir_reason reason = {{0}};
    const char *file = NULL;
    int got = 0;

    while ((lines->lines_max == 0 || lines->read < lines->lines_max) && !replay_stop_asked() &&
           (got = replay_trace_next(trace, &line, &file, &reason)) > 0) {
        lines->read = line.n;
        replay_progress_note(progress, line.n);
        if (line.kind != REPLAY_OTHER && give(lines, &line, progress) < 0)
            return -1;
    }
    lines->stopped = replay_stop_asked();
    if (got < 0) {
        replay_progress_clear(progress);
        cli_error("%s: %s", file, reason.text);
        return -1;
    }
    return 0;
}

int replay_lines_each(struct replay_trace *trace, struct replay_lines *lines)
{
    struct replay_progress progress;

    lines->malformed = lines->read = 0;
    replay_progress_begin(&progress, trace, lines->doing);

    int error = each(trace, lines, &progress);

    replay_progress_clear(&progress);
    if (error == 0 && lines->malformed > MALFORMED_TOLD_MAX)
        cli_error("%" PRIu64 " more lines were malformed", lines->malformed - MALFORMED_TOLD_MAX);
    return error;
}
