/* SPDX-License-Identifier: Apache-2.0 */
/* The store that nodes share, in the life of the daemon. */
#ifndef WEIR_SERVER_STORES_DAEMON_H
#define WEIR_SERVER_STORES_DAEMON_H

#include "server/own.h"
#include "server/service.h"

struct weir_shared_store;

extern const struct weir_service weir_service_stores;

/* NULL: it is not open, or keeps nothing. */
static inline struct weir_shared_store *weir_daemon_shared(const struct weir_daemon *daemon)
{
    return weir_own(daemon, WEIR_OWN_STORE);
}

#endif
