/* SPDX-License-Identifier: Apache-2.0 */
/* The control loop: signals, timers and the end of the process. See daemon.h. */
#ifndef WEIR_SERVER_DAEMON_CONTROL_H
#define WEIR_SERVER_DAEMON_CONTROL_H

#include "server/daemon/daemon.h"

/* Blocks or unblocks (`how` of pthread_sigmask) what the control loop handles. Until there is one:
 * SIGTERM and SIGINT end the process at once, and a wish to reload waits. */
void weir_control_signals(int how);
void weir_control_signals_begin(void);

/* Signals, watch, clock: on the admin worker's loop. Errors: WEIR_ERR_IO. */
int weir_control_open(struct weir_daemon *daemon, struct weir_reason *reason)
    __attribute__((warn_unused_result));

#endif
