/* SPDX-License-Identifier: Apache-2.0 */
/* One second of an access log: its lines, kept until the second is over.
 *
 * Access logs have whole seconds. Taken literally, all that came within a second came at its
 * first nanosecond, and limits per second deny what they would have admitted. So the lines of one
 * second are spread over it evenly, in their order: the first of n at its start, the next 1/n
 * later. For that all of them have to be read before the first is decided.
 *
 * Lines are of one second where they stand one after the other and the text between their first
 * brackets is the same.
 *
 * Memory: copies of the lines, at most SECOND_LINES_MAX and SECOND_BYTES_MAX and one line more. A
 * second that has more is cut into several, each spread over it; time never goes back, so the later
 * ones then crowd at its end.
 *
 * Threads: one owner.
 */
#ifndef WEIR_CLI_REPLAY_SECOND_H
#define WEIR_CLI_REPLAY_SECOND_H

#include "cli/replay/trace.h"

#define SECOND_LINES_MAX 65536
#define SECOND_BYTES_MAX ((size_t)16 << 20)

struct replay_second;

/* NULL: no memory. */
struct replay_second *replay_second_open(void);
void replay_second_close(struct replay_second *second);

/* Whether a line belongs to the second at hand; the first line of an empty one does, if its second
 * is known. JSON lines have times of their own and belong to none. */
bool replay_second_takes(const struct replay_second *second, const struct replay_line *line);

/* Copies a line that it takes. Returns 0 or WEIR_ERR_MEMORY. */
int replay_second_add(struct replay_second *second, const struct replay_line *line)
    __attribute__((warn_unused_result));

/* Gives back the lines in their order, with `place` and `of` set; false: all were given, and it is
 * empty. A line is valid until the next call. */
bool replay_second_next(struct replay_second *second, struct replay_line *line);

#endif
