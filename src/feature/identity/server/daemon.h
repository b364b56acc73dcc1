/* SPDX-License-Identifier: Apache-2.0 */
/* Callers that are kept in Redis, in the life of the daemon. */
#ifndef WEIR_FEATURE_IDENTITY_SERVER_DAEMON_H
#define WEIR_FEATURE_IDENTITY_SERVER_DAEMON_H

#include "server/own.h"
#include "server/service.h"

struct weir_directories;

extern const struct weir_service weir_service_identities;

/* NULL: it is not open, or keeps nothing. */
static inline struct weir_directories *weir_daemon_directories(const struct weir_daemon *daemon)
{
    return weir_own(daemon, WEIR_OWN_IDENTITIES);
}

#endif
