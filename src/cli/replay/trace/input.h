/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of one trace file, as they are or decompressed: gzip (RFC 1952, several members one
 * after the other) and zstd (RFC 8878, several frames), known by their first bytes, not by a name.
 *
 * Bytes are decompressed as they are read, into the caller's buffer, never as a whole: a file that
 * expands without end costs time and no memory. A frame of zstd needs memory for its window; one
 * that wants more than 128 MiB (zstd --long=28 and more) is refused.
 *
 * Memory: 64 KiB, of compressed files 40 KiB (gzip) or the window (zstd; 8 MiB at most levels)
 * more. Threads: one owner.
 */
#ifndef WEIR_CLI_REPLAY_TRACE_INPUT_H
#define WEIR_CLI_REPLAY_TRACE_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <weir/error.h>

struct replay_input;

/* Opens a file; "-" is standard input. NULL, with a reason: it cannot be opened or read, it is
 * compressed by another program, or there is no memory. */
struct replay_input *replay_input_open(const char *path, struct weir_reason *reason);
void replay_input_close(struct replay_input *input);

/* Reads at most `size` bytes (> 0) of the text. Returns how many, 0 at its end (also after
 * replay_stop_asked), or -1 with a reason: it cannot be read, or is damaged or cut off. */
ssize_t replay_input_read(struct replay_input *input, char *out, size_t size,
                          struct weir_reason *reason) __attribute__((warn_unused_result));

/* "gzip", "zstd" or "". */
const char *replay_input_packing(const struct replay_input *input);

/* Bytes of the file that have been read. */
uint64_t replay_input_taken(const struct replay_input *input);

/* Whether it can be opened once more and then has the same bytes: a regular file, not "-". */
bool replay_input_is_file(const struct replay_input *input);

#endif
