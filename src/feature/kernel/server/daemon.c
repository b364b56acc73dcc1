/* SPDX-License-Identifier: Apache-2.0 */
/* see daemon.h */
#include "feature/kernel/server/daemon.h"

#include "feature/kernel/server/metrics.h"
#include "feature/kernel/server/service.h"
#include "feature/standing/server/daemon.h"
#include "server/daemon/daemon.h"

static uint64_t kernel_time(void *context)
{
    struct weir_daemon *daemon = context;
    return weir_worker_time(daemon->admin);
}

static void kernel_configure(struct weir_daemon *daemon, const struct weir_settings *settings)
{
    weir_kernel_service_translate(weir_daemon_kernel(daemon), settings);
    weir_kernel_service_configure(weir_daemon_kernel(daemon), &settings->kernel->nftables);
}

static bool kernel_drops(const void *kernel, const struct weir_cidr *network)
{
    return weir_kernel_service_bans(kernel, network);
}

static int kernel_start(struct weir_daemon *daemon, struct weir_reason *reason)
{
    struct weir_standing_service *standing = weir_daemon_standing(daemon);
    struct weir_kernel_service *kernel = NULL;
    if (!standing)
        return 0;
    int err = weir_kernel_service_open(&kernel, standing, &daemon->log, kernel_time, daemon,
                                       daemon->admin->loop);
    weir_own_set(daemon, WEIR_OWN_KERNEL, kernel);
    if (err < 0)
        return err;
    standing->is_dropped = kernel_drops;
    standing->drops = kernel;
    kernel_configure(daemon, weir_rules_settings(daemon->rules));
    return 0;
}

static void kernel_apply(struct weir_daemon *daemon, struct weir_rules *rules, void *read)
{
    if (weir_daemon_kernel(daemon) && weir_rules_settings(rules)->standing->kinds_count > 0)
        kernel_configure(daemon, weir_rules_settings(rules));
}

static void kernel_stop(struct weir_daemon *daemon)
{
    weir_kernel_service_stop(weir_daemon_kernel(daemon));
}

static void kernel_close(struct weir_daemon *daemon)
{
    if (weir_daemon_kernel(daemon))
        weir_daemon_standing(daemon)->is_dropped = NULL;
    weir_kernel_service_close(weir_daemon_kernel(daemon));
    weir_own_set(daemon, WEIR_OWN_KERNEL, NULL);
}

static const struct weir_http_route *const kernel_routes[] = {
    weir_kernel_routes,
    NULL,
};

const struct weir_service weir_service_kernel = {
    .name = "kernel",
    .needs = "standing",
    .routes = kernel_routes,
    .start = kernel_start,
    .apply = kernel_apply,
    .metrics = weir_kernel_metrics,
    .stop = kernel_stop,
    .close = kernel_close,
};
