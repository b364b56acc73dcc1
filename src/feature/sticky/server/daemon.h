/* SPDX-License-Identifier: Apache-2.0 */
/* The other nodes of a fleet, in the life of the daemon. */
#ifndef WEIR_FEATURE_STICKY_SERVER_DAEMON_H
#define WEIR_FEATURE_STICKY_SERVER_DAEMON_H

#include "server/own.h"
#include "server/service.h"

struct weir_sticky_peers;

extern const struct weir_service weir_service_sticky;

/* NULL: it is not open, or keeps nothing. */
static inline struct weir_sticky_peers *weir_daemon_sticky(const struct weir_daemon *daemon)
{
    return weir_own(daemon, WEIR_OWN_STICKY);
}

#endif
