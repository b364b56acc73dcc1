/* SPDX-License-Identifier: Apache-2.0 */
/* The file of denials: lines of JSON (denial.h), appended by a thread of its own.
 *
 *   PATH     the newest, mode 0600
 *   PATH.1   those before; it is replaced when PATH has reached half of the size
 *
 * So the two together are at most as large as the rules say. What is older than `keep` is not
 * shown, and PATH.1 is removed when all of it is older.
 *
 * The main thread hands on lines through a bounded buffer and never waits for the disk: lines that
 * find no room, or that the disk refuses, are dropped and counted. A line that a crash has cut is
 * ended before the next one, and one that a full disk has cut is removed. A path that is a link, or
 * no regular file, is refused.
 *
 * A file that is gone from its path (`rm`, `mv`) is recreated before the next lines are written.
 * weir_denial_file_reopen has that done at once, as a program that rotates logs expects.
 *
 * Closing waits WEIR_DENIAL_FILE_STOP_MS for the disk. What it has not taken then is lost and
 * counted.
 *
 * Reading takes whatever a file may have: lines that are too long or no denials are skipped and
 * counted.
 *
 * Threads: open, put and close are the main thread's; the reader is any's.
 */
#ifndef WEIR_FEATURE_USE_SERVER_DENIAL_FILE_H
#define WEIR_FEATURE_USE_SERVER_DENIAL_FILE_H

#include <weir/error.h>

#include "feature/use/server/denial.h"

/* How long the end of weir waits for lines to be written. */
#define WEIR_DENIAL_FILE_STOP_MS 5000
/* Lines that wait to be written. */
#define WEIR_DENIAL_FILE_WAITING ((size_t)1 << 20)

struct weir_denial_file;

struct weir_denial_file_options {
    const char *path;
    uint64_t size_bytes; /* of both files */
    uint64_t keep_ns;
};

/* Opens or makes the file, and starts the thread. Errors: WEIR_ERR_MEMORY, WEIR_ERR_IO; `reason`
 * says more. */
int weir_denial_file_open(struct weir_denial_file **file,
                          const struct weir_denial_file_options *options,
                          struct weir_reason *reason) __attribute__((warn_unused_result));
/* Writes what waits, and closes. Returns how many lines have been dropped in all. NULL is allowed.
 */
uint64_t weir_denial_file_close(struct weir_denial_file *file);

/* Has the file opened again before the next lines. */
void weir_denial_file_reopen(struct weir_denial_file *file);

/* Hands a line on, without its end. False: it was dropped. */
bool weir_denial_file_put(struct weir_denial_file *file, const char *line, size_t size);

struct weir_denial_file_stats {
    _Atomic uint64_t written, dropped; /* lines; dropped: no room, or the disk refused them */
};
const struct weir_denial_file_stats *weir_denial_file_stats(const struct weir_denial_file *file);

/* --- Reading ---------------------------------------------------------------------------------- */

typedef void (*weir_denial_found)(void *context, const struct weir_denial *denial);

struct weir_denial_reading {
    struct weir_denial_filter filter;
    weir_denial_found found; /* called for each that matches, oldest first */
    void *context;
    uint64_t tail_bytes; /* read only so much of the end of each file; 0: all */
    uint64_t skipped;    /* out: lines that are no denials */
};

/* Reads PATH.1 and PATH; one that is not there has none. Errors: WEIR_ERR_IO (neither can be read;
 * `reason` says why), WEIR_ERR_MEMORY. */
int weir_denial_file_read(const char *path, struct weir_denial_reading *reading,
                          struct weir_reason *reason) __attribute__((warn_unused_result));

/* Reads lines from memory, as from a file. */
void weir_denial_lines_read(const char *text, size_t size, struct weir_denial_reading *reading);

#endif
