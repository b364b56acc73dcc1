/* SPDX-License-Identifier: Apache-2.0 */
/* Where the daemon listens, as the command line and the rules say, and what it leaves there. */
#ifndef WEIR_SERVER_DAEMON_ADDRESSES_H
#define WEIR_SERVER_DAEMON_ADDRESSES_H

#include "server/daemon/daemon.h"

/* The address of a listener: command line, else rules file, else default. */
const char *weir_daemon_http(const struct weir_daemon *daemon,
                             const struct weir_settings *settings);
const char *weir_daemon_redis(const struct weir_daemon *daemon,
                              const struct weir_settings *settings);
const char *weir_daemon_grpc(const struct weir_daemon *daemon,
                             const struct weir_settings *settings);
const char *weir_daemon_admin(const struct weir_daemon *daemon,
                              const struct weir_settings *settings);

/* "off" without one. */
const char *weir_daemon_challenge(const struct weir_settings *settings);

/* Removes the paths of Unix sockets, unless a supervisor has the sockets for the next process. */
void weir_daemon_remove_sockets(const struct weir_daemon *daemon);

/* Connections that may be open, over all listeners but the admin's. */
uint64_t weir_daemon_connections_max(const struct weir_daemon *daemon);

#endif
