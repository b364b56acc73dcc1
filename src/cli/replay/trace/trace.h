/* SPDX-License-Identifier: Apache-2.0 */
/* A recorded trace: the lines of all its files, in the order of time.
 *
 * Files are read in the order of their first requests, in whatever order they were given (the
 * shell's is the newest first: access.log access.log.1 …). Where the times of two overlap, because
 * two servers wrote them, or a server that was rotating, their lines are merged by time.
 *
 * To know the first times, every file is opened once before the first line is given, and read as
 * far as its first request; a pipe stays open from then on. So only files that overlap are open at
 * a time. Files without a request come first.
 *
 * Memory: that of a source (source.h) for each file that is open. Threads: one owner.
 */
#ifndef WEIR_CLI_REPLAY_TRACE_TRACE_H
#define WEIR_CLI_REPLAY_TRACE_TRACE_H

#include "cli/replay/trace/source.h"

struct replay_trace;

struct replay_trace_options {
    const char *const *files; /* borrowed; "-" is standard input */
    size_t count;
    int format;    /* as replay_source_open */
    bool disorder; /* likewise */
};

/* NULL: no memory. */
struct replay_trace *replay_trace_open(const struct replay_trace_options *options);
void replay_trace_close(struct replay_trace *trace);

/* Returns 1 with a line, 0 at the end of the last file, or -1 with a reason and the file that it is
 * about. The first call looks at all files. */
int replay_trace_next(struct replay_trace *trace, struct replay_line *line, const char **file,
                      struct weir_reason *reason) __attribute__((warn_unused_result));

/* How the trace was read so far. */
struct replay_reading {
    const struct replay_file *files; /* in the order in which they are read */
    size_t count;
    bool reordered;                    /* another order than the one given */
    bool merged;                       /* lines of several files were merged */
    uint64_t taken_bytes, total_bytes; /* of files on disk; total 0: there is a pipe */
};
struct replay_reading replay_trace_reading(const struct replay_trace *trace);

#endif
