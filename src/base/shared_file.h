/* SPDX-License-Identifier: Apache-2.0 */
/* What a file needs that several processes map, lock and replace: the state file, the map of
 * standing, the ring of strikes, the results of the edge, what clients share.
 *
 * Locks are those of open file descriptions (F_OFD_SETLK): the kernel drops them with the process,
 * also after a kill, and two descriptions of one process keep each other out. A lock is on one
 * byte, which need not be in the file.
 *
 *   opened     by name; weir_file_is_at says whether another process has replaced it meanwhile
 *   new        under another name, with the access of the file that it replaces, or of the one that
 *              it belongs to; then renamed
 *   refused    weir_file_fail and weir_file_fail_errno: the path, and what is wrong
 *
 * Memory: none. Threads: no state. System calls on a path hang when its file system does.
 */
#ifndef WEIR_BASE_SHARED_FILE_H
#define WEIR_BASE_SHARED_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include <weir/error.h>

/* Sets (F_WRLCK, F_RDLCK) or clears (F_UNLCK) the lock of one byte. False: errno says why, EAGAIN
 * or EACCES where another open file has it. */
bool weir_file_lock(int fd, uint64_t at, short type);

/* Waits for the exclusive lock of one byte: patience_ns, UINT64_MAX without a bound, with naps of
 * nap_ns. Errors: WEIR_ERR_BUSY (another open file has it), WEIR_ERR_IO (errno says why; also a
 * signal during a wait without a bound). */
int weir_file_lock_within(int fd, uint64_t at, uint64_t patience_ns, uint64_t nap_ns)
    __attribute__((warn_unused_result));

/* Takes byte 0 for the one writer of a file, at once. Errors: WEIR_ERR_BUSY (`reason` says `busy`),
 * WEIR_ERR_IO. */
int weir_file_lock_writer(int fd, const char *path, const char *busy, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* Whether two descriptors are one file. */
bool weir_file_is_same(int fd, int other);

/* Whether a path names the open file; `links`: also through symbolic links. */
bool weir_file_is_at(int fd, const char *path, bool links);

/* Gives a new file the owner and group of another one, as far as this process may. False: not even
 * the group, so the mode should give the group that the file has no rights. */
bool weir_file_give(int fd, const struct stat *like);

/* Gives a new file owner, group and mode of the file of a path, for files beside a state file. What
 * the system refuses stays as it is; without its group it is its owner's alone. */
void weir_file_take_access(int fd, const char *like);

/* Whether a folder is one that a group shares: its group may write there, and new files get that
 * group (the setgid bit), as in /run/weir-state (mode 2770, root:weir-state). The process that
 * makes a file there lets the group use it too, unless a setting says another mode: otherwise the
 * process that starts first would lock out all others. `mode`: the folder's st_mode. */
bool weir_folder_is_shared(mode_t mode);

/* The same of the folder that a path is in. */
bool weir_file_is_in_shared_folder(const char *path);

/* Sets a reason (NULL: none) to "PATH: WHAT"; a path that leaves no room is cut at its beginning.
 * Returns err. */
int weir_file_fail(struct weir_reason *reason, int err, const char *path, const char *what);

/* Sets it to "PATH: cannot WHAT: " and the text of errno; `what` NULL: to "PATH: " and the text.
 * Returns WEIR_ERR_NOT_FOUND for ENOENT, WEIR_ERR_MEMORY for ENOMEM, else WEIR_ERR_IO. */
int weir_file_fail_errno(struct weir_reason *reason, const char *path, const char *what);

/* Reads `bytes` from the beginning of a file, whatever signals come. False: there are fewer, or an
 * error. */
bool weir_file_pread_all(int fd, void *to, uint64_t bytes);

/* Writes `size` bytes, whatever signals come. Returns how many are written: fewer after an error,
 * which errno names. */
size_t weir_file_write_all(int fd, const char *bytes, size_t size);

#endif
