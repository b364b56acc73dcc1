/* SPDX-License-Identifier: Apache-2.0 */
/* Watching the state file, certificates and Envoy's folder for changes. See daemon.h. */
#ifndef WEIR_SERVER_DAEMON_WATCH_H
#define WEIR_SERVER_DAEMON_WATCH_H

#include "server/daemon/daemon.h"

/* Looks on the background thread whether files have changed. `wanted`: WEIR_WANT_... */
void weir_daemon_watch_start(struct weir_daemon *daemon, unsigned wanted);

/* Takes note of what a look at the state file has found: logs it, or ends the process. */
void weir_daemon_state_seen(struct weir_daemon *daemon, enum weir_table_file state);

/* Frees what the background thread has read and is no longer needed. */
void weir_daemon_watch_drop(struct weir_daemon *daemon);

/* Hands new certificates to all workers; takes over one reference. */
void weir_daemon_set_certificates(struct weir_daemon *daemon,
                                  struct weir_certificates *certificates);

#endif
