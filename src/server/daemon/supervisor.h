/* SPDX-License-Identifier: Apache-2.0 */
/* What a supervisor such as systemd passes to weir, and learns from it.
 *
 *   LISTEN_FDS, LISTEN_PID       listening sockets from number 3 on: of a socket unit, or those
 * that the last process has left with the supervisor (sd_listen_fds(3)) NOTIFY_SOCKET where
 * datagrams go: ready, stopping, a status, signs of life, and sockets to keep for the next process
 * (sd_notify(3)) WATCHDOG_USEC, WATCHDOG_PID  how often it requires a sign of life
 * (sd_watchdog_enabled(3))
 *
 * So an upgrade refuses no connection: the supervisor holds the listening sockets while one process
 * ends and the next one starts, and connections wait in them.
 *
 * Written by hand: the protocol is one datagram, and libsystemd is missing in small containers.
 *
 * Threads: one owner, the main thread.
 */
#ifndef WEIR_SERVER_DAEMON_SUPERVISOR_H
#define WEIR_SERVER_DAEMON_SUPERVISOR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/un.h>

#include "server/net/listener.h"

/* Sockets that are taken over: each of six listeners has one for each worker. More are closed. */
#define WEIR_PASSED_MAX (6 * WEIR_WORKERS_MAX)

/* A process that has no supervisor is one of zeros, with `notify` -1. */
struct weir_supervisor {
    int notify; /* a datagram socket; -1: nobody listens */
    struct sockaddr_un address;
    socklen_t address_size;
    bool watchdog; /* it requires signs of life */
    bool holds;    /* it has listening sockets, so their paths stay when weir ends */
    unsigned passed_count;
    int passed[WEIR_PASSED_MAX]; /* nobody has taken them yet */
};

/* Reads the environment, and removes these variables from it. Sockets that were passed become the
 * supervisor's. */
void weir_supervisor_open(struct weir_supervisor *supervisor);

/* Sends lines such as "READY=1\nSTATUS=…". What cannot be sent is lost. */
void weir_supervisor_send(const struct weir_supervisor *supervisor, const char *lines);

/* Leaves copies of these sockets, of which there may be none, with a supervisor that there is,
 * under a name, in place of those that it has under that name. A socket that does not listen yet is
 * not kept. */
void weir_supervisor_keep(struct weir_supervisor *supervisor, const char *name, const int *fds,
                          unsigned count);

/* Takes the sockets that listen at this address, at most `max`, which become the caller's. Returns
 * their number. */
unsigned weir_supervisor_take(struct weir_supervisor *supervisor,
                              const struct weir_endpoint *endpoint, int *fds, unsigned max);

/* Closes the sockets that nobody has taken. Returns their number. */
unsigned weir_supervisor_drop(struct weir_supervisor *supervisor);

/* As drop, and ends. */
void weir_supervisor_close(struct weir_supervisor *supervisor);

#endif
