/* SPDX-License-Identifier: Apache-2.0 */
/* The line of progress of a replay, on a terminal only: lines, rate, share of the files' bytes, and
 * the time that is left at the mean rate so far.
 *
 *   replay: 12,400,000 lines  2.9 M/s  43 %  6s left
 *
 * The share needs files; of a pipe there are lines and rate. The clock is read every
 * REPLAY_PROGRESS_LINES lines, and the line is written once a second, to stderr.
 */
#ifndef WEIR_CLI_REPLAY_PROGRESS_H
#define WEIR_CLI_REPLAY_PROGRESS_H

#include <stdbool.h>

#include "cli/replay/trace/trace.h"

#define REPLAY_PROGRESS_LINES 8192 /* some milliseconds */
#define REPLAY_PROGRESS_MAX 128

struct replay_progress {
    const struct replay_trace *trace;
    const char *doing;
    bool shown, on_terminal;
    uint64_t started_ns, shown_ns, checked; /* checked: lines at the last look at the clock */
};

/* Starts the clock, where stderr is a terminal. `doing`: the first word of the line. */
void replay_progress_begin(struct replay_progress *progress, const struct replay_trace *trace,
                           const char *doing);

void replay_progress_show(struct replay_progress *progress, uint64_t lines);

/* `lines` have been read. */
static inline void replay_progress_note(struct replay_progress *progress, uint64_t lines)
{
    if (progress->on_terminal && lines - progress->checked >= REPLAY_PROGRESS_LINES)
        replay_progress_show(progress, lines);
}

/* Removes the line. */
void replay_progress_clear(struct replay_progress *progress);

/* The text: `taken` of `total` bytes (0: not known) after so long. Returns `text`. */
const char *replay_progress_text(char text[REPLAY_PROGRESS_MAX], const char *doing, uint64_t lines,
                                 uint64_t taken, uint64_t total, uint64_t elapsed_ns);

#endif
