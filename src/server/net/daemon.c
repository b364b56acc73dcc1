/* SPDX-License-Identifier: Apache-2.0 */
/* see daemon.h */
#include "server/net/daemon.h"

#include <stdlib.h>

#include "server/admin/overlooked_api.h"
#include "server/daemon/daemon.h"

static int net_open(struct weir_daemon *daemon, struct weir_reason *reason)
{
    struct weir_net *net = calloc(1, sizeof *net);
    if (!net)
        return WEIR_ERR_MEMORY;
    weir_own_set(daemon, WEIR_OWN_NET, net);
    weir_overlooked_init(&net->overlooked);
    return weir_guesses_open(&net->guesses, weir_table_secret(daemon->table));
}

static int net_for_worker(struct weir_daemon *daemon, struct weir_worker_options *options,
                          struct weir_reason *reason)
{
    struct weir_net *net = weir_daemon_net(daemon);
    options->guesses = net->guesses;
    options->overlooked = &net->overlooked;
    options->peers = net->peers;
    return 0;
}

static void net_tick(struct weir_daemon *daemon, uint64_t now_ns)
{
    weir_overlooked_names(&weir_daemon_net(daemon)->overlooked, &daemon->log, daemon->rules,
                          uv_now(daemon->admin->loop));
}

static void net_close(struct weir_daemon *daemon)
{
    struct weir_net *net = weir_daemon_net(daemon);
    if (!net)
        return;
    weir_guesses_close(net->guesses);
    weir_peers_close(net->peers);
    free(net);
    weir_own_set(daemon, WEIR_OWN_NET, NULL);
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
    .metrics = weir_overlooked_metrics,
    .close = net_close,
};
