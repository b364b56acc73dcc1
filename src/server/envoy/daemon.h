/* SPDX-License-Identifier: Apache-2.0 */
/* Envoy's service in the life of the daemon. See daemon/daemon.h. */
#ifndef WEIR_SERVER_ENVOY_DAEMON_H
#define WEIR_SERVER_ENVOY_DAEMON_H

#include "server/daemon/daemon.h"

/* Envoy's service, where the rules or the command line name its configuration: opens it and loads
 * that for the first time (what is wrong with it is logged, and every call then fails); starts what
 * looks after it on the admin worker's loop; reads it under new rules, on any thread; takes that
 * over; says that it is going; closes it, when the workers are closed. Errors: WEIR_ERR_MEMORY. */
int weir_daemon_envoy_open(struct weir_daemon *daemon, struct weir_reason *reason)
    __attribute__((warn_unused_result));
int weir_daemon_envoy_start(struct weir_daemon *daemon, struct weir_reason *reason)
    __attribute__((warn_unused_result));
void weir_daemon_envoy_read(const struct weir_daemon *daemon, const struct weir_rules *rules,
                            struct weir_envoy_reading *reading);
void weir_daemon_envoy_take(struct weir_daemon *daemon, struct weir_rules *rules,
                            struct weir_envoy_reading *reading);
void weir_daemon_envoy_stop(struct weir_daemon *daemon);
void weir_daemon_envoy_close(struct weir_daemon *daemon);

#endif
