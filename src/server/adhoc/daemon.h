/* SPDX-License-Identifier: Apache-2.0 */
/* Limits that requests and commands give, in the life of the daemon. */
#ifndef WEIR_SERVER_ADHOC_DAEMON_H
#define WEIR_SERVER_ADHOC_DAEMON_H

#include "server/own.h"
#include "server/resp/resp.h"
#include "server/service.h"

extern const struct weir_service weir_service_adhoc;

/* What the workers' Redis front ends share. NULL: it has not started. */
static inline struct weir_resp_shared *weir_daemon_redis(const struct weir_daemon *daemon)
{
    return weir_own(daemon, WEIR_OWN_ADHOC);
}

/* NULL: it has not started. */
static inline struct weir_adhoc_limits *weir_daemon_given_limits(const struct weir_daemon *daemon)
{
    const struct weir_resp_shared *redis = weir_daemon_redis(daemon);
    return redis ? redis->limits : NULL;
}

#endif
