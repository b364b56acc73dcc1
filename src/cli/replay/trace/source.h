/* SPDX-License-Identifier: Apache-2.0 */
/* One file of a trace: from its bytes to requests with their times.
 *
 *   bytes (input.h) ──▶ lines ──▶ a container's envelope off ──▶ records (wire/log/formats.h)
 *
 * What it is, is known by its first lines: whether a container runtime wrote them, and which row of
 * the table of formats reads most of them (the first 32, or more where a program first speaks of
 * other things, up to 1 MiB). A byte order mark, CR LF and blank lines are ignored. A line may
 * be at most REPLAY_LINE_MAX bytes; a longer one is malformed, and costs no memory.
 *
 * A second. Most formats have whole seconds. Taken literally, all that came within a second came at
 * its first nanosecond, and limits per second would deny what they admit. So the lines of one
 * second are spread over it evenly, in their order: the first of n at its start, the next 1/n
 * later. Lines are of one second where they stand one after the other with the same time. For that
 * they are all parsed before the first is given out, and stay where they were read. A second of
 * more than SECOND_LINES_MAX lines or SECOND_BYTES_MAX bytes is cut into several, each spread over
 * it.
 *
 * Order. Lines are to be in the order in which they were written (record.h: written_ns). One that
 * was written more than REPLAY_DISORDER_NS before one above it ends the reading, unless disorder is
 * allowed: such a file was put together wrongly, and would be decided at wrong times.
 *
 * Memory: 0.6 MiB, and up to 48 MiB while the longest of seconds are read; of containers that cut
 * lines, up to two lines more. Threads: one owner.
 */
#ifndef WEIR_CLI_REPLAY_TRACE_SOURCE_H
#define WEIR_CLI_REPLAY_TRACE_SOURCE_H

#include "cli/replay/trace/input.h"
#include "wire/log/envelope.h"
#include "wire/log/formats.h"

/* Sixteen times the largest body of /v1/check: what a server would take fits by far. */
#define REPLAY_LINE_MAX ((size_t)1 << 20)
#define SECOND_LINES_MAX 65536
#define SECOND_BYTES_MAX ((size_t)16 << 20)
#define REPLAY_DISORDER_NS (UINT64_C(60) * 1000000000)

#define REPLAY_FORMAT_AUTO (-1)

enum replay_line_kind {
    REPLAY_REQUEST,
    REPLAY_BAD,   /* malformed */
    REPLAY_OTHER, /* a server's word about itself: no request, and no fault */
};

struct replay_line {
    enum replay_line_kind kind;
    const struct weir_log_record *record; /* of a REQUEST: valid until the next line of its file */
    uint64_t t_ns;      /* when it came, in its place within its second; of others the time of the
                           request before it */
    const char *reason; /* of a BAD one; NULL: that of one of very many, which nobody reads */
    const char *file;   /* as given by the user; "(standard input)" for "-" */
    uint64_t number;    /* of this line in its file, from 1 */
    uint64_t n;         /* of all lines of the trace that are not blank, from 1 (trace.h sets it) */
};

/* What a file was read as, and what was found in it so far. */
struct replay_file {
    const char *name;
    const char *packing; /* "gzip", "zstd" or "" */
    enum weir_log_envelope envelope;
    int format;                       /* enum weir_log_format; -1: it has no lines */
    uint64_t lines, requests, others; /* lines: not blank */
    uint64_t behind, behind_ns; /* requests written before one above them, by at most so much */
};

struct replay_source;

/* `format`: an enum weir_log_format, or REPLAY_FORMAT_AUTO. `disorder`: whether it is allowed. NULL
 * with a reason: it cannot be opened or read, no format fits its lines, or there is no memory. */
struct replay_source *replay_source_open(const char *path, int format, bool disorder,
                                         struct weir_reason *reason);
void replay_source_close(struct replay_source *source);

/* Returns 1 with a line, 0 at the end of the file, or -1 with a reason: it cannot be read, there is
 * no memory, or its lines are in disorder. */
int replay_source_next(struct replay_source *source, struct replay_line *line,
                       struct weir_reason *reason) __attribute__((warn_unused_result));

const struct replay_file *replay_source_file(const struct replay_source *source);

/* Bytes of the file that have been read, compressed as it is. */
uint64_t replay_source_taken(const struct replay_source *source);

/* Whether it may be closed, and opened and read anew. */
bool replay_source_is_file(const struct replay_source *source);

#endif
