/* SPDX-License-Identifier: Apache-2.0 */
/* A region in a file: opening, creating, replacing.
 *
 * A file is opened under two locks of its own lock space: LOCK_OPENING, held while a process opens
 * it, and LOCK_PRESENCE, shared by all processes that have it open. A process that gets the latter
 * exclusively is alone, and may recover dead owners, start the clock anew, or replace the file. A
 * new file is completed under another name (path.new, locked in the same way) and then renamed, so
 * that a half-written file never appears. Its blocks are allocated at once, so that a full disk is
 * an error now and not a signal later. */
#ifndef WEIR_TABLE_FILE_FILE_H
#define WEIR_TABLE_FILE_FILE_H

#include "table/region.h"

/* Opens or creates options->path: sets table->path, ->fd, and the region's parts. *alone: no other
 * process has it open, which stays so until file_opened. On an error the caller unmaps and closes.
 * Errors: as weir_table_open. */
int file_open(struct weir_table *table, const struct weir_table_options *options, bool *alone,
              struct weir_reason *reason) __attribute__((warn_unused_result));

/* Reads and checks what never changes in the header of a file of `size` bytes. Errors:
 * WEIR_ERR_FORMAT, WEIR_ERR_DAMAGED. */
int file_read_header(int fd, const char *path, uint64_t size, struct table_header *header,
                     struct weir_reason *reason) __attribute__((warn_unused_result));

/* Lets other processes open it. Errors: WEIR_ERR_IO. */
int file_opened(struct weir_table *table) __attribute__((warn_unused_result));

#endif
