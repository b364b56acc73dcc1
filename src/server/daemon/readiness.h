/* SPDX-License-Identifier: Apache-2.0 */
/* Whether this node can do its work. See daemon.h. */
#ifndef WEIR_SERVER_DAEMON_READINESS_H
#define WEIR_SERVER_DAEMON_READINESS_H

#include "server/daemon/daemon.h"

/* Whether this node can do its work, while it does not stop: without its store, it can if no limit
 * of `rules` fails closed, and no call of Envoy's service fails; without its identities, if
 * `on_error` does not deny; with a neighbour
 * on its state file that is stopped, it cannot, whatever on_store_error says. On any thread:
 * `rules` are those that the thread holds. */
struct weir_readiness {
    unsigned workers, without_store; /* workers, and those of them that do not reach it */
    unsigned without_identities;     /* likewise, the Redis of callers */
    unsigned stopped;                /* the pid of a neighbour on the state file that is; 0: none */
    bool limits;                     /* it can decide what the rules limit */
    bool envoy;                      /* and what Envoy's service is asked; there may be none */
};
void weir_daemon_readiness(const struct weir_daemon *daemon, const struct weir_rules *rules,
                           struct weir_readiness *readiness);

#endif
