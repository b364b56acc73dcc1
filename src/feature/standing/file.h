/* SPDX-License-Identifier: Apache-2.0 */
/* The file of a map of standing.
 *
 * The writer makes its file complete under the name PATH.new, with its blocks allocated, and then
 * renames it: there never is half a file, and a full disk is an error and not a signal. It keeps a
 * lock on its file (of the open file description, which the kernel drops with the process), so
 * there is one writer.
 *
 * A new file has mode 0600. The group that may read the file which it replaces may read it, too,
 * and so may the group that shares its folder (base/shared_file.h).
 */
#ifndef WEIR_FEATURE_STANDING_FILE_H
#define WEIR_FEATURE_STANDING_FILE_H

#include "feature/standing/layout.h"

/* Maps the file at a path into *map for reading. Errors: WEIR_ERR_NOT_FOUND, WEIR_ERR_FORMAT,
 * WEIR_ERR_DAMAGED, WEIR_ERR_IO; *map needs no unmapping then. */
int standing_file_open(struct weir_standing *map, const char *path, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* Reads the file at a path into private memory, which no cut of the file can reach. *fd: it, with
 * the lock of a writer; the caller closes it, also after WEIR_ERR_FORMAT and WEIR_ERR_DAMAGED.
 * Errors: as standing_file_open, WEIR_ERR_BUSY (another process writes it), WEIR_ERR_MEMORY. */
int standing_file_read(struct weir_standing *map, int *fd, const char *path,
                       struct weir_reason *reason) __attribute__((warn_unused_result));

/* Tells readers of a file that another one is to have its name. */
void standing_file_mark_replaced(int fd);

/* Locks a file for its writer. Errors: WEIR_ERR_BUSY, WEIR_ERR_IO. */
int standing_file_lock(int fd, const char *path, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* Maps a new file PATH.new (private memory when path is NULL) with that header into *map. Errors:
 * WEIR_ERR_MEMORY, WEIR_ERR_BUSY, WEIR_ERR_IO. */
int standing_file_draft(struct weir_standing *map, const char *path,
                        const struct standing_header *header, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* Gives the draft its name, or removes it. Errors: WEIR_ERR_IO. */
int standing_file_publish(const char *path, struct weir_reason *reason)
    __attribute__((warn_unused_result));
void standing_file_discard(const char *path);

/* Whether the file is smaller than its map; never of private memory. */
bool standing_file_cut(const struct weir_standing *map);

void standing_file_unmap(struct weir_standing *map);

#endif
