/* SPDX-License-Identifier: Apache-2.0 */
/* The state table of a replay: as large as its keys need.
 *
 * A table too small forgets states in use, and the replay is not exact; one far too large makes it
 * slow and touches memory for nothing, since keys are spread over all of it. So it begins small,
 * and when more than half of it is in use, its states move to one four times as large. A bound is
 * what the trace may need (no more keys than lines, no more lines than the files have bytes for),
 * and a quarter of the machine's memory; the report says when that was not enough. A size that the
 * user gives is fixed.
 *
 * Memory: 8 MiB, or 64 MiB where limits have states that need spans; then at most 4 * 29 * 2 bytes
 * a state (table.h: 28.4 bytes a key at 75 %), and while it grows a quarter more.
 *
 * Threads: one owner.
 */
#ifndef WEIR_CLI_REPLAY_STATE_H
#define WEIR_CLI_REPLAY_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rules/rules.h"
#include "store/store.h"
#include "table/table.h"

struct replay_state_size {
    uint64_t bytes, bytes_max; /* to begin with, and to grow to */
    uint32_t span_percent;     /* 0: the table's default */
    uint32_t states;           /* that one request makes, at most */
    uint64_t span_bytes;       /* that these need, about */
};

/* The sizes for the rules' limits. `given` (0: none) is what the user asked for. `memory_bytes` is
 * the machine's, `trace_bytes` the sum of the files' sizes. */
struct replay_state_size replay_state_size(const struct weir_rules *rules, uint64_t given,
                                           uint64_t trace_bytes, uint64_t memory_bytes);

/* The sum of the sizes of files; a pipe or "-", whose size nobody knows, counts as 64 MiB, a
 * compressed file (.gz, .zst) ten times. */
uint64_t replay_state_trace_bytes(const char *const *files, size_t count);

struct replay_state {
    struct replay_state_size size;
    struct weir_table *table;
    struct weir_store *store;
    uint64_t look_at;              /* after so many lines */
    uint64_t evictions, overflows; /* of tables that were left */
};

/* Opens table and store. Errors: those of weir_table_open and weir_store_embedded_open. */
int replay_state_open(struct replay_state *state, const struct replay_state_size *size,
                      const uint64_t secret[2], struct weir_reason *reason)
    __attribute__((warn_unused_result));
void replay_state_close(struct replay_state *state);

/* Makes room for the lines to come, before line `lines` + 1 is decided at `now_ns`. Returns 0, 1:
 * states have moved, so that all limits have to be prepared anew; or WEIR_ERR_MEMORY and others of
 * weir_table_open. */
int replay_state_grow(struct replay_state *state, uint64_t lines, uint64_t now_ns,
                      const uint64_t secret[2]) __attribute__((warn_unused_result));

/* Begins with a larger table, before the first line: limits do not fit. False: it may not grow. */
bool replay_state_enlarge(struct replay_state *state, const uint64_t secret[2])
    __attribute__((warn_unused_result));

static inline bool replay_state_is_due(const struct replay_state *state, uint64_t lines)
{
    return lines >= state->look_at;
}

/* Statistics, with the losses of all its tables. */
void replay_state_stats(const struct replay_state *state, uint64_t now_ns,
                        struct weir_table_stats *stats);

#endif
