/* SPDX-License-Identifier: Apache-2.0 */
/* A recorded trace: its lines, one after the other, from files of any size.
 *
 * Files are read in pieces, never as a whole. A line may be at most REPLAY_LINE_MAX bytes; a longer
 * one is skipped and reported as such, so that a binary file given by mistake costs no memory.
 * Blank lines and the end of a line (LF or CRLF) belong to no request and are left out. A line
 * is in the reader's buffer, may be written to (parsers unescape in place) and is valid until
 * the next call.
 *
 * The format of a file is known by its first line when it is `auto`: a line that begins with '{' is
 * JSON, anything else an access log. Common and combined logs are one format to the parser: a
 * combined line has two fields more.
 *
 * Threads: one owner.
 */
#ifndef WEIR_CLI_REPLAY_TRACE_H
#define WEIR_CLI_REPLAY_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Sixteen times the largest body of /v1/check: what a server would take fits by far. */
#define REPLAY_LINE_MAX ((size_t)1 << 20)

enum replay_format { REPLAY_AUTO, REPLAY_JSONL, REPLAY_ACCESS_LOG };

struct replay_trace;

struct replay_line {
    char *text;                /* not NUL-terminated */
    size_t size;               /* 0 when too_long */
    const char *file;          /* as given by the user; "(standard input)" for "-" */
    uint64_t number;           /* of this line in its file, from 1 */
    enum replay_format format; /* JSONL or ACCESS_LOG */
    bool too_long;
    uint32_t place, of; /* the place'th, from 0, of so many in one second (second.h); of = 0:
                           its time is exact */
};

/* `files` (borrowed) are read in their order; "-" is standard input. Returns NULL when out of
 * memory. */
struct replay_trace *replay_trace_open(const char *const *files, size_t count,
                                       enum replay_format format);

/* Returns 1 with a line, 0 at the end of the last file, or WEIR_ERR_IO with *file and *error
 * (an errno) set when a file cannot be opened or read. */
int replay_trace_next(struct replay_trace *trace, struct replay_line *line, const char **file,
                      int *error) __attribute__((warn_unused_result));

void replay_trace_close(struct replay_trace *trace);

#endif
