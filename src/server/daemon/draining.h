/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a run: no new connections, then the last answers, then nothing. */
#ifndef WEIR_SERVER_DAEMON_DRAINING_H
#define WEIR_SERVER_DAEMON_DRAINING_H

#include "server/daemon/daemon.h"

/* Stops accepting on all workers, and ends when the last connection is gone, or after
 * WEIR_SHUTDOWN_MS. */
void weir_daemon_drain(struct weir_daemon *daemon);

/* Ends what is open, answered or not. */
void weir_daemon_stop_all(struct weir_daemon *daemon);

#endif
