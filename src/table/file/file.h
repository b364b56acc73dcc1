/* SPDX-License-Identifier: Apache-2.0 */
/* A region in a file: opening, creating, replacing.
 *
 * A file is opened under two locks of its own lock space: LOCK_OPENING, held while anybody opens
 * it, and LOCK_PRESENCE, shared by all who have it open. Who gets the latter exclusively is alone,
 * and may clean up, start the clock anew, or replace the file. A new file is made complete under
 * another name (path.new, locked in the same way) and then renamed, so that there never is half a
 * file; and its blocks are allocated at once, so that a full disk is an error now and not a signal
 * later.
 */
#ifndef WEIR_TABLE_FILE_FILE_H
#define WEIR_TABLE_FILE_FILE_H

#include "table/region.h"

/* Opens or creates options->path: sets table->path, ->fd, and the region's parts. *alone: nobody
 * else has it open; that stays so until file_opened. On an error the caller unmaps and closes.
 * Errors: as weir_table_open. */
int file_open(struct weir_table *table, const struct weir_table_options *options, bool *alone,
              struct weir_reason *reason) __attribute__((warn_unused_result));

/* Reads and checks what never changes in the header of a file of `size` bytes. Errors:
 * WEIR_ERR_FORMAT, WEIR_ERR_DAMAGED. */
int file_read_header(int fd, const char *path, uint64_t size, struct table_header *header,
                     struct weir_reason *reason) __attribute__((warn_unused_result));

/* Whether it is a file of version 1, which is copied when it is opened. */
bool file_is_version1(int fd);

/* Lets others in. Errors: WEIR_ERR_IO. */
int file_opened(struct weir_table *table) __attribute__((warn_unused_result));

#endif
