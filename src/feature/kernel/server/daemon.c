/* SPDX-License-Identifier: Apache-2.0 */
/* see daemon.h */
#include "feature/kernel/server/daemon.h"

#include "feature/kernel/server/metrics.h"
#include "server/daemon/daemon.h"

static uint64_t kernel_time(void *context)
{
    struct weir_daemon *daemon = context;
    return weir_worker_time(daemon->admin);
}

static void kernel_configure(struct weir_daemon *daemon, const struct weir_settings *settings)
{
    weir_kernel_service_translate(daemon->kernel, settings);
    weir_kernel_service_configure(daemon->kernel, &settings->kernel.nftables);
}

static int kernel_start(struct weir_daemon *daemon, struct weir_reason *reason)
{
    if (!daemon->standing)
        return 0;
    int err = weir_kernel_service_open(&daemon->kernel, daemon->standing, &daemon->log, kernel_time,
                                       daemon, daemon->admin->loop);
    if (err == 0)
        kernel_configure(daemon, weir_rules_settings(daemon->rules));
    return err;
}

static void kernel_apply(struct weir_daemon *daemon, struct weir_rules *rules, void *read)
{
    if (daemon->kernel && weir_rules_settings(rules)->standing.kinds_count > 0)
        kernel_configure(daemon, weir_rules_settings(rules));
}

static void kernel_stop(struct weir_daemon *daemon)
{
    weir_kernel_service_stop(daemon->kernel);
}

static void kernel_close(struct weir_daemon *daemon)
{
    weir_kernel_service_close(daemon->kernel);
    daemon->kernel = NULL;
}

static const struct weir_http_route *const kernel_routes[] = {
    weir_kernel_routes,
    NULL,
};

const struct weir_service weir_service_kernel = {
    .name = "kernel",
    .routes = kernel_routes,
    .start = kernel_start,
    .apply = kernel_apply,
    .metrics = weir_metrics_of_kernel,
    .stop = kernel_stop,
    .close = kernel_close,
};
