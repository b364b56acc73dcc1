/* SPDX-License-Identifier: Apache-2.0 */
/* What a trace is, by its first lines: the envelope of a container runtime if most of them have it,
 * and the row of the table of formats that fits them best (wire/log/formats.h). */
#ifndef WEIR_CLI_REPLAY_TRACE_DETECT_H
#define WEIR_CLI_REPLAY_TRACE_DETECT_H

#include "cli/replay/trace/source.h"

#define REPLAY_DETECT_LINES 32 /* that fit some format; more would rarely change the result */
#define REPLAY_DETECT_BYTES ((size_t)1 << 20) /* what a program says before its first request */

/* The first lines of a file: whole ones, except at its end. */
struct replay_sample {
    const char *text;
    size_t size;
    size_t lines;
};

/* Of text[0..size); `skipping`: it begins within a line that is too long, which does not count. */
struct replay_sample replay_sample_of(const char *text, size_t size, bool skipping, bool at_eof);

bool replay_is_blank(const char *text, size_t size);

/* Sets the file's envelope, and its format: the one given, or the best. Returns 1, 0: no format
 * fits any of the lines, or -1 with a reason (no memory). */
int replay_detect(struct replay_file *file, const struct replay_sample *sample, int format,
                  struct weir_log_room *room, struct weir_reason *reason);

/* What to do where the sample tells all that it can. With a format, or without lines: 0. Lines that
 * begin as JSON are taken for weir's own, so that the report names the fault of each. Else -1 with
 * a reason. */
int replay_detect_guess(struct replay_file *file, const struct replay_sample *sample,
                        struct weir_reason *reason);

/* "auto, jsonl, combined, …": what --format takes. Returns `text`. */
#define REPLAY_FORMATS_MAX 160
const char *replay_format_names(char text[REPLAY_FORMATS_MAX]);

/* The format of this name, REPLAY_FORMAT_AUTO for "auto"; -2: there is none. */
int replay_format_of(const char *name);

#endif
