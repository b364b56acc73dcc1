/* SPDX-License-Identifier: Apache-2.0 */
/* A history on a disk that hangs, or whose file goes while it is open.
 *
 * SQLite continues with a file that is deleted or replaced, and what it writes is gone when it is
 * closed. So its owner looks (weir_history_place), and
 *
 *   gone    rescue: a copy of what is open gets the path; abandon; open
 *   other   abandon; open
 *
 * Threads: as history.h.
 */
#ifndef WEIR_FEATURE_STANDING_RESCUE_H
#define WEIR_FEATURE_STANDING_RESCUE_H

#include "feature/standing/history.h"

/* As weir_history_open, but waits for so long at most. Errors: also WEIR_ERR_BUSY: the disk has not
 * answered by then; what is opened later is closed at once, by a thread that is left behind. */
int weir_history_open_within(struct weir_history **history,
                             const struct weir_history_options *options, unsigned wait_ms,
                             struct weir_reason *reason) __attribute__((warn_unused_result));

/* What has the path of the history now. */
enum weir_history_place {
    WEIR_HISTORY_THERE, /* the file that is open, or it cannot be found out */
    WEIR_HISTORY_GONE, /* nothing: what is written from now on is lost when the history is closed */
    WEIR_HISTORY_OTHER, /* another file */
};
enum weir_history_place weir_history_place(const struct weir_history *history);

/* Writes all that the open file holds, which is gone from its path, to the path again: open that,
 * and abandon this one. Errors: WEIR_ERR_IO, WEIR_ERR_BUSY, WEIR_ERR_DAMAGED, WEIR_ERR_MEMORY;
 * WEIR_ERR_TOO_LARGE (the path is too long). */
int weir_history_rescue(struct weir_history *history, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* Closes one whose path is another file's by now: before that is opened. What is beside the path is
 * removed where it belongs to this one, and left alone where it does not. */
void weir_history_abandon(struct weir_history *history);

#endif
