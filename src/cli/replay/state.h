/* SPDX-License-Identifier: Apache-2.0 */
/* How large a state table a replay needs when nobody says so.
 *
 * A table too small forgets states in use, and the replay is not exact; one far too large makes a
 * short replay touch memory for nothing, since keys are spread over all of it. So the size follows
 * the trace: no more keys than lines, no more lines than the files have bytes for, and the states
 * of the limits for each. It is a guess, bounded by the machine's memory; the report tells when it
 * was not enough.
 */
#ifndef WEIR_CLI_REPLAY_STATE_H
#define WEIR_CLI_REPLAY_STATE_H

#include <stddef.h>
#include <stdint.h>

#include "rules/rules.h"

/* Sets *bytes and *span_percent (0: the table's default) for a table of the rules' limits. `given`
 * (0: none) is what the user asked for. `memory_bytes` is the machine's, `trace_bytes` the sum of
 * the files' sizes. */
void replay_state_size(const struct weir_rules *rules, uint64_t given, uint64_t trace_bytes,
                       uint64_t memory_bytes, uint64_t *bytes, uint32_t *span_percent);

/* The sum of the sizes of files; a pipe or "-", whose size nobody knows, counts as 64 MiB. */
uint64_t replay_state_trace_bytes(const char *const *files, size_t count);

#endif
