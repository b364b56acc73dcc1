/* SPDX-License-Identifier: Apache-2.0 */
/* Where the daemon listens, as the command line and the rules say, and what it leaves there. */
#ifndef WEIR_SERVER_DAEMON_ADDRESSES_H
#define WEIR_SERVER_DAEMON_ADDRESSES_H

#include "server/daemon/daemon.h"

/* The address of a front end: command line, else rules file, else default; "off": none. */
const char *weir_daemon_address(const struct weir_daemon *daemon, const struct weir_front *front,
                                const struct weir_settings *settings);

/* Whether a front end has a listener in this run. */
bool weir_daemon_listens(const struct weir_daemon *daemon, const struct weir_front *front);

/* Removes the paths of Unix sockets, unless a supervisor has the sockets for the next process. */
void weir_daemon_remove_sockets(const struct weir_daemon *daemon);

/* Connections that may be open, over all listeners but the admin's. */
uint64_t weir_daemon_connections_max(const struct weir_daemon *daemon);

#endif
