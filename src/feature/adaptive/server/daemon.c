/* SPDX-License-Identifier: Apache-2.0 */
/* see daemon.h */
#include "feature/adaptive/server/daemon.h"

#include "feature/adaptive/server/controllers.h"
#include "server/admin/health_api.h"
#include "server/daemon/clock.h"
#include "server/daemon/daemon.h"
#include "server/net/seed.h"

static int adaptive_open(struct weir_daemon *daemon, struct weir_reason *reason)
{
    const uint64_t *region = weir_table_secret(daemon->table);
    const uint64_t secret[2] = {region[0] ^ weir_seed_draw(0), region[1] ^ weir_seed_draw(1)};
    struct weir_controllers *controllers = NULL;
    int err = weir_controllers_open(&controllers, &daemon->log, secret);
    weir_own_set(daemon, WEIR_OWN_ADAPTIVE, controllers);
    return err < 0 ? err
                   : weir_controllers_set_rules(weir_daemon_controllers(daemon), daemon->rules,
                                                weir_clock_wall_ns());
}

static int adaptive_for_worker(struct weir_daemon *daemon, struct weir_worker_options *options,
                               struct weir_reason *reason)
{
    options->controllers = weir_daemon_controllers(daemon);
    return 0;
}

/* Without memory the scales of the new rules stay at 100 % until the next reload. */
static void adaptive_apply(struct weir_daemon *daemon, struct weir_rules *rules, void *read)
{
    if (weir_controllers_set_rules(weir_daemon_controllers(daemon), rules,
                                   weir_worker_time(daemon->admin)) < 0)
        weir_log_event(&daemon->log, WEIR_LOG_ERROR, "adaptive_failed", "reason", "out of memory");
}

static void adaptive_tick(struct weir_daemon *daemon, uint64_t now_ns)
{
    weir_controllers_tick(weir_daemon_controllers(daemon), now_ns);
}

static void adaptive_close(struct weir_daemon *daemon)
{
    weir_controllers_close(weir_daemon_controllers(daemon));
    weir_own_set(daemon, WEIR_OWN_ADAPTIVE, NULL);
}

static const struct weir_http_route *const adaptive_routes[] = {
    weir_health_routes,
    NULL,
};

const struct weir_service weir_service_adaptive = {
    .name = "adaptive",
    .routes = adaptive_routes,
    .open = adaptive_open,
    .for_worker = adaptive_for_worker,
    .apply = adaptive_apply,
    .tick = adaptive_tick,
    .metrics = weir_health_metrics,
    .close = adaptive_close,
};
