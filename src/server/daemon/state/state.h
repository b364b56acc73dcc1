/* SPDX-License-Identifier: Apache-2.0 */
/* Opening the table, in memory or in the state file. See daemon.h. */
#ifndef WEIR_SERVER_DAEMON_STATE_STATE_H
#define WEIR_SERVER_DAEMON_STATE_STATE_H

#include "server/daemon/daemon.h"
#include "server/service.h"

/* Opens the table, unless the last run has left it. */
extern const struct weir_service weir_service_state;

/* Opens it again, for the next run: the file that has the path now, or one written anew from the
 * region that is open, which stays where that fails. Errors: those of weir_table_open,
 * weir_daemon_check_state. */
int weir_daemon_reopen_table(struct weir_daemon *daemon, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* Whether the limits of these rules find room in the state that the daemon has, or would open.
 * Errors: WEIR_ERR_FULL and others; `reason` names the state. */
int weir_daemon_check_state(const struct weir_daemon *daemon, struct weir_rules *rules,
                            struct weir_reason *reason) __attribute__((warn_unused_result));

/* Logs the limits for whose keys the table has little room, some of them by name. */
void weir_daemon_log_few_keys(struct weir_daemon *daemon);

#endif
