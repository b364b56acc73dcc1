/* SPDX-License-Identifier: Apache-2.0 */
/* What can be said of a region's file without touching it: what has become of the file that is
 * open, whether one would hold the limits of some rules, and how many of their keys.
 *
 * Threads: as struct weir_table, which these functions only read.
 */
#ifndef WEIR_TABLE_FILE_STATE_FILE_H
#define WEIR_TABLE_FILE_STATE_FILE_H

#include "table/table.h"

enum weir_table_file {
    WEIR_TABLE_FILE_OURS,        /* its path names it; always so in private memory */
    WEIR_TABLE_FILE_GONE,        /* nothing has the path's name any more */
    WEIR_TABLE_FILE_OTHER,       /* another file has it: whoever opens that counts apart */
    WEIR_TABLE_FILE_CUT,         /* it is shorter than the region: touching it ends the process */
    WEIR_TABLE_FILE_OVERWRITTEN, /* somebody has written over its header */
};

/* Compares the file that is open with its path and with what it was when it was opened. System
 * calls on the path, which may hang where its file system does. */
enum weir_table_file weir_table_file_state(const struct weir_table *table);

/* For handlers of signals, and safe there. Where the region is mapped from a file; false: it is
 * private memory. And whether its header is not what it was, looking at nothing but memory. */
bool weir_table_mapping(const struct weir_table *table, const void **base, uint64_t *bytes);
bool weir_table_overwritten(const struct weir_table *table);

/* Whether weir_table_open with these options gives a region that has room for so many distinct
 * limits (of `specs` different numbers). A file that is there is read, never locked or changed; one
 * that this process may not read is judged by its size. Errors: WEIR_ERR_FULL, WEIR_ERR_RANGE,
 * WEIR_ERR_IO, WEIR_ERR_FORMAT, WEIR_ERR_DAMAGED. */
int weir_table_check_room(const struct weir_table_options *options, uint32_t limits, uint32_t specs,
                          struct weir_reason *reason) __attribute__((warn_unused_result));

/* What a region has room for: of an open one, and of the one that weir_table_open would give with
 * these options. Errors: as weir_table_check_room, but for WEIR_ERR_FULL. */
struct weir_table_capacity {
    uint64_t bytes, slots, span_bytes;
};
void weir_table_capacity(const struct weir_table *table, struct weir_table_capacity *capacity);
int weir_table_plan_capacity(const struct weir_table_options *options,
                             struct weir_table_capacity *capacity, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* About how many keys find room there that have used up a limit by requests of cost 1, if no other
 * limit has any. A key has a state of each of `limits` (several rates of one). */
uint64_t weir_table_keys_of(const struct weir_table_capacity *capacity,
                            const struct weir_limit *limits, uint32_t count);

#endif
