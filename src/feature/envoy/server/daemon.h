/* SPDX-License-Identifier: Apache-2.0 */
/* Envoy's service and its quotas, in the life of the daemon, where the rules or the command line
 * name its configuration. What is wrong with that is logged, and every call then fails. */
#ifndef WEIR_FEATURE_ENVOY_SERVER_DAEMON_H
#define WEIR_FEATURE_ENVOY_SERVER_DAEMON_H

#include "feature/envoy/server/shared.h"
#include "server/own.h"
#include "server/service.h"

struct weir_envoy_statsd;
struct weir_quota_service;

struct weir_envoy_run {
    struct weir_envoy_shared *shared; /* NULL: no such service is configured */
    struct weir_envoy_statsd *statsd;
    struct weir_quota_service *quota;
    struct weir_envoy_reading reading; /* while the background thread looks */
    uv_timer_t watch;                  /* of the folder */
    uv_async_t wake;                   /* a response of the control plane waits */
};

extern const struct weir_service weir_service_envoy;

/* NULL: it is not open. */
static inline struct weir_envoy_run *weir_daemon_envoy_run(const struct weir_daemon *daemon)
{
    return weir_own(daemon, WEIR_OWN_ENVOY);
}

/* NULL: no such service is configured. */
static inline struct weir_envoy_shared *weir_daemon_envoy(const struct weir_daemon *daemon)
{
    const struct weir_envoy_run *run = weir_daemon_envoy_run(daemon);
    return run ? run->shared : NULL;
}

static inline struct weir_quota_service *weir_daemon_quota(const struct weir_daemon *daemon)
{
    const struct weir_envoy_run *run = weir_daemon_envoy_run(daemon);
    return run ? run->quota : NULL;
}

#endif
