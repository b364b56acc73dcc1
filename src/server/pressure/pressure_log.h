/* SPDX-License-Identifier: Apache-2.0 */
/* Keys that find no room in the table, as the daemon reports them: lines of the log, and /readyz.
 * See pressure.h for how they are found. Threads: the main thread. */
#ifndef WEIR_SERVER_PRESSURE_PRESSURE_LOG_H
#define WEIR_SERVER_PRESSURE_PRESSURE_LOG_H

#include "server/daemon/daemon.h"

/* Begins to look at the open table. Errors: WEIR_ERR_MEMORY. */
int weir_daemon_pressure_open(struct weir_daemon *daemon, struct weir_reason *reason)
    __attribute__((warn_unused_result));
void weir_daemon_pressure_close(struct weir_daemon *daemon);

/* Looks, and logs what is due. */
void weir_daemon_pressure_tick(struct weir_daemon *daemon, uint64_t now_ns);

/* Whether keys found no room lately; and that in one line, as far as it fits, with or without the
 * `names` of the limits. */
bool weir_daemon_is_pressed(const struct weir_daemon *daemon);
void weir_daemon_pressure_text(const struct weir_daemon *daemon, bool names, char *text,
                               size_t room);

#endif
