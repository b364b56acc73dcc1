/* SPDX-License-Identifier: Apache-2.0 */
/* The file that names a running server: its process id, under a lock (fcntl) that ends with the
 * process, so that a file that was left behind never names another program that got the same id.
 *
 * Threads: the main thread only.
 */
#ifndef WEIR_CLI_RELOAD_PID_FILE_H
#define WEIR_CLI_RELOAD_PID_FILE_H

#include <sys/types.h>

#include <weir/error.h>

/* Makes the file and locks it until the process ends. A link is refused. Errors: WEIR_ERR_BUSY
 * (another process has it), WEIR_ERR_IO; `reason` says which. */
int cli_pid_file_take(const char *path, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* Removes what this process has taken. */
void cli_pid_file_remove(const char *path);

/* The process that holds the file. Errors: WEIR_ERR_NOT_FOUND (none does), WEIR_ERR_IO; `reason`
 * says why. */
int cli_pid_file_holder(const char *path, pid_t *holder, struct weir_reason *reason)
    __attribute__((warn_unused_result));

#endif
