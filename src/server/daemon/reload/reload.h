/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the rules file and all that it names, at start and at each reload. See daemon.h. */
#ifndef WEIR_SERVER_DAEMON_RELOAD_RELOAD_H
#define WEIR_SERVER_DAEMON_RELOAD_RELOAD_H

#include "server/daemon/daemon.h"

/* Loads the rules file (or none: no limits) and certificates on the background thread, before there
 * is a loop: signals go on to end the process meanwhile. What is wrong goes to stderr. Errors:
 * WEIR_ERR_RULES, WEIR_ERR_MEMORY, WEIR_ERR_IO. */
int weir_daemon_load(struct weir_daemon *daemon) __attribute__((warn_unused_result));

/* Checks what only a daemon cares for: listeners that are open to others say so; files that
 * libraries open by name are regular files. Errors: WEIR_ERR_RULES. */
int weir_daemon_check(const struct weir_daemon *daemon, const struct weir_settings *settings,
                      struct weir_reason *reason) __attribute__((warn_unused_result));

/* Makes the limits known to the table. Errors: those of weir_table_intern. */
int weir_daemon_prepare(struct weir_daemon *daemon, struct weir_rules *rules,
                        struct weir_reason *reason) __attribute__((warn_unused_result));

/* Reads the rules file again on the background thread. */
void weir_daemon_reload_start(struct weir_daemon *daemon);

/* Logs a reload that takes long. */
void weir_daemon_reload_tick(struct weir_daemon *daemon);

/* Logs how a reload went. */
void weir_daemon_reload_log(struct weir_daemon *daemon, const struct weir_reload *reload);

/* Begins to stop, in order to run once more with these rules, on the file that has the state file's
 * path then. */
void weir_daemon_run_again(struct weir_daemon *daemon, struct weir_reload *reload);

/* Frees what the background thread has read and is no longer needed. */
void weir_daemon_reload_drop(struct weir_daemon *daemon);

#endif
