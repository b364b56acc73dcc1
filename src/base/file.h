/* SPDX-License-Identifier: Apache-2.0 */
/* Opening files for reading: regular files only.
 *
 * A FIFO, a socket, a device or a folder is refused at once, and never waited for. Symbolic links
 * to regular files are followed, so Kubernetes' mounts work. On a file system that hangs, a call
 * hangs too: a daemon opens files on a thread that it can leave behind.
 *
 * Threads: no state.
 */
#ifndef WEIR_BASE_FILE_H
#define WEIR_BASE_FILE_H

#include <stddef.h>

#include <weir/error.h>

/* Opens a regular file for reading. Returns a descriptor (the caller closes it), WEIR_ERR_NOT_FOUND
 * (there is no such file), or WEIR_ERR_IO (it cannot be opened, or is not a regular file); `reason`
 * says what is wrong, without the path. */
int weir_file_open(const char *path, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* Whether a regular file is there that this process may read; for files that a library opens by
 * name. Errors: as weir_file_open, but `reason` begins with the path. */
int weir_file_check(const char *path, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* Reads a regular file from its beginning, at most `room` bytes. Returns how many, or the error of
 * weir_file_open with `reason` filled. */
long weir_file_read(const char *path, void *bytes, size_t room, struct weir_reason *reason);

/* The same into memory that grows with the file, one byte more than `most` at the utmost, so that a
 * larger one is noticed. *bytes is the caller's to free, and NULL after an error. Errors: as
 * weir_file_open; WEIR_ERR_MEMORY. */
int weir_file_read_whole(const char *path, size_t most, char **bytes, size_t *size,
                         struct weir_reason *reason) __attribute__((warn_unused_result));

#endif
