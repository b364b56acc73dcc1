/* SPDX-License-Identifier: Apache-2.0 */
/* The control loop: signals, timers and the end of the process. See daemon.h. */
#ifndef WEIR_SERVER_DAEMON_CONTROL_H
#define WEIR_SERVER_DAEMON_CONTROL_H

#include "server/daemon/daemon.h"

/* Has the background thread do something, at once or when it is free. A reload reads the rules file
 * again and hands the new rules to all workers; a file with errors is logged and changes nothing. A
 * watch reads certificates and Envoy's folder again if they have changed; errors are logged and
 * leave the old ones in use. */
void weir_daemon_want(struct weir_daemon *daemon, unsigned wanted);

/* Stops accepting on all workers, and ends when the last connection is gone, or after
 * WEIR_SHUTDOWN_MS. */
void weir_control_drain(struct weir_daemon *daemon);

/* Blocks or unblocks (`how` of pthread_sigmask) what the control loop handles. Until there is one:
 * SIGTERM and SIGINT end the process at once, and a wish to reload waits. */
void weir_control_signals(int how);
void weir_control_signals_begin(void);

/* Signals, watch, clock: on the admin worker's loop. Errors: WEIR_ERR_IO. */
int weir_control_open(struct weir_daemon *daemon, struct weir_reason *reason)
    __attribute__((warn_unused_result));

#endif
