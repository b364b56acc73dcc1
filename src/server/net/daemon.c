/* SPDX-License-Identifier: Apache-2.0 */
/* see daemon.h */
#include "server/net/daemon.h"

#include "server/admin/overlooked_api.h"
#include "server/daemon/daemon.h"

static int net_open(struct weir_daemon *daemon, struct weir_reason *reason)
{
    weir_overlooked_init(&daemon->overlooked);
    return weir_guesses_open(&daemon->guesses, weir_table_secret(daemon->table));
}

static int net_for_worker(struct weir_daemon *daemon, struct weir_worker_options *options,
                          struct weir_reason *reason)
{
    options->guesses = daemon->guesses;
    options->overlooked = &daemon->overlooked;
    options->peers = daemon->peers;
    return 0;
}

static void net_tick(struct weir_daemon *daemon, uint64_t now_ns)
{
    weir_overlooked_names(&daemon->overlooked, &daemon->log, daemon->rules,
                          uv_now(daemon->admin->loop));
}

static void net_close(struct weir_daemon *daemon)
{
    weir_guesses_close(daemon->guesses);
    daemon->guesses = NULL;
}

static const struct weir_http_route *const net_routes[] = {
    weir_overlooked_routes,
    NULL,
};

const struct weir_service weir_service_net = {
    .name = "net",
    .routes = net_routes,
    .open = net_open,
    .for_worker = net_for_worker,
    .tick = net_tick,
    .metrics = weir_metrics_of_overlooked,
    .close = net_close,
};
