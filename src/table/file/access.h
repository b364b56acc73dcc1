/* SPDX-License-Identifier: Apache-2.0 */
/* Who may open a state file: owner, group and mode of a new one, and why an existing one was not
 * opened.
 *
 * A file that processes of several users share belongs to a group of its own and has mode 0660.
 * Names are looked up when a file is made, never later.
 *
 * Threads: no state of its own.
 */
#ifndef WEIR_TABLE_FILE_ACCESS_H
#define WEIR_TABLE_FILE_ACCESS_H

#include "table/table.h"

/* Gives the new file `fd`, which is called `path`, its owner, group and mode: those of the options;
 * where these say nothing, those of the file that it replaces (`old`; -1: none), else 0600 (0660 in
 * a folder that a group shares, base/shared_file.h) and the process's own. Errors:
 * WEIR_ERR_NOT_FOUND (no such user or group), WEIR_ERR_IO (this process may not set it). */
int access_set(int fd, const char *path, const struct weir_table_options *options, int old,
               struct weir_reason *reason) __attribute__((warn_unused_result));

/* Appends why opening `path` was refused with EACCES or EPERM: the file's mode, owner and group,
 * and the user of this process. */
void access_explain(const char *path, struct weir_reason *reason);

/* Whether this process may open the state file of these options, or make it where there is none:
 * that the names in the options exist, and that the file or its folder lets this process. Neither
 * opens nor makes the file. Errors: WEIR_ERR_NOT_FOUND (no such user or group), WEIR_ERR_IO. */
int weir_table_check_access(const struct weir_table_options *options, struct weir_reason *reason)
    __attribute__((warn_unused_result));

#endif
