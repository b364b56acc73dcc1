/* SPDX-License-Identifier: Apache-2.0 */
/* see daemon.h */
#include "feature/use/server/daemon.h"

#include "feature/use/server/consumers_api.h"
#include "feature/use/server/denials_api.h"
#include "feature/use/server/history.h"
#include "feature/use/server/metrics.h"
#include "feature/use/server/series/series_api.h"
#include "server/daemon/daemon.h"
#include "server/net/seed.h"

static int use_open(struct weir_daemon *daemon, struct weir_reason *reason)
{
    struct weir_use_service *use = NULL;
    int err = weir_use_open(&use, daemon, reason);
    weir_own_set(daemon, WEIR_OWN_USE, use);
    return err;
}

static int use_for_worker(struct weir_daemon *daemon, struct weir_worker_options *options,
                          struct weir_reason *reason)
{
    return weir_use_add_worker(weir_daemon_use(daemon), options, weir_seed_draw(options->index));
}

static int use_start(struct weir_daemon *daemon, struct weir_reason *reason)
{
    return weir_use_start(weir_daemon_use(daemon), daemon->admin->loop, reason);
}

static int use_check(struct weir_daemon *daemon, struct weir_rules *rules, void **read,
                     struct weir_reason *reason)
{
    struct weir_use_limits *limits = NULL;
    int err = weir_use_limits_open(&limits, rules);
    *read = limits;
    return err;
}

static void use_apply(struct weir_daemon *daemon, struct weir_rules *rules, void *read)
{
    weir_daemon_use(daemon)->next = read;
}

static void use_applied(struct weir_daemon *daemon)
{
    struct weir_use_limits *limits = weir_daemon_use(daemon)->next;
    weir_daemon_use(daemon)->next = NULL;
    weir_use_set_rules(weir_daemon_use(daemon), limits);
}

static void use_drop(void *read)
{
    weir_use_limits_free(read);
}

static void use_reopen(struct weir_daemon *daemon)
{
    weir_use_reopen(weir_daemon_use(daemon));
}

static void use_stop(struct weir_daemon *daemon)
{
    weir_use_stop(weir_daemon_use(daemon));
}

static void use_close(struct weir_daemon *daemon)
{
    weir_use_close(weir_daemon_use(daemon));
    weir_own_set(daemon, WEIR_OWN_USE, NULL);
}

static const struct weir_http_route *const use_routes[] = {
    weir_consumers_routes,
    weir_denials_routes,
    weir_series_routes,
    NULL,
};

const struct weir_service weir_service_use = {
    .name = "use",
    .routes = use_routes,
    .open = use_open,
    .start = use_start,
    .for_worker = use_for_worker,
    .check = use_check,
    .apply = use_apply,
    .applied = use_applied,
    .drop = use_drop,
    .reopen = use_reopen,
    .metrics = weir_use_metrics,
    .scrape = weir_use_scrape,
    .stop = use_stop,
    .close = use_close,
};
