/* SPDX-License-Identifier: Apache-2.0 */
/* see addresses.h */
#include "server/daemon/addresses.h"

const char *weir_daemon_http(const struct weir_daemon *daemon, const struct weir_settings *settings)
{
    return daemon->options.http     ? daemon->options.http
           : settings->http.address ? settings->http.address
                                    : WEIR_HTTP_ADDRESS_DEFAULT;
}

/* Only where it was asked for. */
const char *weir_daemon_redis(const struct weir_daemon *daemon,
                              const struct weir_settings *settings)
{
    return daemon->options.redis     ? daemon->options.redis
           : settings->redis.address ? settings->redis.address
                                     : "off";
}

const char *weir_daemon_grpc(const struct weir_daemon *daemon, const struct weir_settings *settings)
{
    return daemon->options.grpc     ? daemon->options.grpc
           : settings->grpc.address ? settings->grpc.address
                                    : "off";
}

const char *weir_daemon_admin(const struct weir_daemon *daemon,
                              const struct weir_settings *settings)
{
    return daemon->options.admin     ? daemon->options.admin
           : settings->admin.address ? settings->admin.address
                                     : WEIR_ADMIN_ADDRESS_DEFAULT;
}

const char *weir_daemon_challenge(const struct weir_settings *settings)
{
    return settings->challenge.listener.address ? settings->challenge.listener.address : "off";
}

void weir_daemon_remove_sockets(const struct weir_daemon *daemon)
{
    if (daemon->supervisor.holds)
        return;
    weir_endpoint_remove(&daemon->http_endpoint);
    weir_endpoint_remove(&daemon->redis_endpoint);
    weir_endpoint_remove(&daemon->grpc_endpoint);
    weir_endpoint_remove(&daemon->admin_endpoint);
    weir_endpoint_remove(&daemon->prometheus_endpoint);
    weir_endpoint_remove(&daemon->challenge_endpoint);
}

uint64_t weir_daemon_connections_max(const struct weir_daemon *daemon)
{
    const struct weir_listener *listener;
    uint64_t max = 0;
    for (unsigned i = 0; (listener = weir_worker_listener(daemon->workers[0], i)); i++)
        max += listener->pool->max;
    return max;
}
