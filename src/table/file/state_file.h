/* SPDX-License-Identifier: Apache-2.0 */
/* Questions about a region's file that change nothing: what has happened to the open file, whether
 * a file has room for the limits of some rules, and for how many of their keys.
 *
 * Threads: as struct weir_table, which these functions only read. */
#ifndef WEIR_TABLE_FILE_STATE_FILE_H
#define WEIR_TABLE_FILE_STATE_FILE_H

#include "table/table.h"

enum weir_table_file {
    WEIR_TABLE_FILE_OURS,  /* its path names it; always in private memory */
    WEIR_TABLE_FILE_GONE,  /* no file has that path any more */
    WEIR_TABLE_FILE_OTHER, /* another file has that path: a process that opens it counts apart */
    WEIR_TABLE_FILE_CUT,   /* it is shorter than the region: touching it ends the process */
    WEIR_TABLE_FILE_OVERWRITTEN, /* its header was overwritten */
};

/* Compares the file that is open with its path and with what it was when it was opened. It makes
 * system calls on the path, which hang when the file system does. */
enum weir_table_file weir_table_file_state(const struct weir_table *table);

/* Safe in signal handlers. The first gives where the region is mapped; false: it is private memory.
 * The second says whether the header in memory has been overwritten. */
bool weir_table_mapping(const struct weir_table *table, const void **base, uint64_t *bytes);
bool weir_table_overwritten(const struct weir_table *table);

/* Whether weir_table_open with these options gives a region that has room for `limits` distinct
 * limits, with `specs` different sets of numbers. An existing file is read, never locked or
 * changed; one that this process may not read counts as absent. Errors: WEIR_ERR_FULL,
 * WEIR_ERR_RANGE, WEIR_ERR_IO, WEIR_ERR_FORMAT, WEIR_ERR_DAMAGED. */
int weir_table_check_room(const struct weir_table_options *options, uint32_t limits, uint32_t specs,
                          struct weir_reason *reason) __attribute__((warn_unused_result));

/* What a region has room for: an open one, or the one that weir_table_open would give with these
 * options. Errors: as weir_table_check_room, except WEIR_ERR_FULL. */
struct weir_table_capacity {
    uint64_t bytes, slots, span_bytes;
};
void weir_table_capacity(const struct weir_table *table, struct weir_table_capacity *capacity);
int weir_table_plan_capacity(const struct weir_table_options *options,
                             struct weir_table_capacity *capacity, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* About how many keys have room that have used up a limit by requests of cost 1, if no other limit
 * has keys. A key has a state of each of `limits` (several rates of one). */
uint64_t weir_table_keys_of(const struct weir_table_capacity *capacity,
                            const struct weir_limit *limits, uint32_t count);

#endif
