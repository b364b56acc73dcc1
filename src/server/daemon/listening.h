/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's listeners: which front end listens where, with how many connections, on which
 * sockets.
 *
 * A front end has a socket for each worker; the admin listener has one. All are bound before any
 * listens, so that a port in use is found before anybody is served. Sockets that the last run, or a
 * supervisor, has for an address are taken over.
 *
 * Threads: the main thread.
 */
#ifndef WEIR_SERVER_DAEMON_LISTENING_H
#define WEIR_SERVER_DAEMON_LISTENING_H

#include "server/daemon/daemon.h"

/* How many workers the command line, the rules or the machine ask for: 1 to WEIR_WORKERS_MAX. */
unsigned weir_listening_workers(const struct weir_daemon *daemon);

/* Gives every listener its pool of connections, from the files that the process may open. Errors:
 * WEIR_ERR_FULL: too few for this many workers. */
int weir_listening_plan(struct weir_daemon *daemon, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* Binds all listeners, then lets them listen, each on its workers. Errors: those of
 * weir_endpoint_parse, weir_endpoint_bind and weir_worker_listen; WEIR_ERR_IO: two have one port.
 */
int weir_listening_open(struct weir_daemon *daemon, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* Whether the addresses can be read and are apart. Errors: as above. Nothing is opened. */
int weir_listening_check(struct weir_daemon *daemon, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* A line of the log for each listener. */
void weir_listening_log(struct weir_daemon *daemon);

/* Leaves copies of the sockets with the supervisor, if there is one: the next process takes them.
 */
void weir_listening_leave(struct weir_daemon *daemon);

/* Closes what the last run has left and no listener has taken. */
void weir_listening_drop(struct weir_daemon *daemon);

#endif
