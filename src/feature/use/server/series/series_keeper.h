/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the series of minutes in a file beside the state, STATE.series, over restarts.
 *
 *   start: the file ─▶ series of the limits that the rules have
 *   once a minute, and at the end: series ─▶ bytes ─▶ a thread: STATE.series.new, fsync, rename
 *
 * The bytes are made in pieces, some series a second, so that no turn of the loop waits for a copy
 * of all; a reload meanwhile begins anew. At the end all are made at once.
 *
 * A crash at any moment leaves the file before or the file after, and loses at most the minute that
 * runs. A file that cannot be read, of another version, or damaged, is left out with a log line,
 * and replaced by the next; minutes that lie in the future, because the clock was set back, are
 * left out, too. A disk that is full or hangs costs the file, and nothing else: while one is being
 * written, no other is begun.
 *
 * Memory: the bytes of the file (feature/use/series_file.h), twice at most. Threads: the main
 * thread's, and one that writes.
 */
#ifndef WEIR_FEATURE_USE_SERVER_SERIES_SERIES_KEEPER_H
#define WEIR_FEATURE_USE_SERVER_SERIES_SERIES_KEEPER_H

#include "feature/use/server/use.h"

/* How long an end waits for the disk. */
#define WEIR_SERIES_STOP_MS 2000

/* Reads the file and begins to keep it; without a state file it does nothing. */
void weir_series_keeper_start(struct weir_use_service *use);
/* Once a second: begins to copy where a minute has ended, continues that, and has it written. */
void weir_series_keeper_tick(struct weir_use_service *use, uint64_t now_s);
/* Writes what there is, and ends. */
void weir_series_keeper_stop(struct weir_use_service *use);

#endif
