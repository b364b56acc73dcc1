/* SPDX-License-Identifier: Apache-2.0 */
/* see daemon.h */
#include "feature/dashboard/server/daemon.h"

#include "feature/dashboard/server/dashboard.h"
#include "feature/dashboard/server/dashboard_page.h"
#include "feature/dashboard/server/events_api.h"
#include "feature/dashboard/server/metrics.h"
#include "feature/dashboard/server/rules_api.h"
#include "feature/dashboard/server/rules_file_api.h"
#include "feature/dashboard/server/session_api.h"
#include "server/daemon/daemon.h"

static int dashboard_open(struct weir_daemon *daemon, struct weir_reason *reason)
{
    struct weir_dashboard *dashboard = NULL;
    int err = weir_dashboard_open(&dashboard, daemon, reason);
    weir_own_set(daemon, WEIR_OWN_DASHBOARD, dashboard);
    return err;
}

static int dashboard_start(struct weir_daemon *daemon, struct weir_reason *reason)
{
    weir_dashboard_start(weir_daemon_dashboard(daemon), daemon->admin->loop);
    return 0;
}

static void dashboard_drain(struct weir_daemon *daemon)
{
    weir_dashboard_stop(weir_daemon_dashboard(daemon));
}

static void dashboard_close(struct weir_daemon *daemon)
{
    weir_dashboard_close(weir_daemon_dashboard(daemon));
    weir_own_set(daemon, WEIR_OWN_DASHBOARD, NULL);
}

static const struct weir_http_route *const dashboard_routes[] = {
    weir_session_routes, weir_rules_routes,          weir_rules_file_routes,
    weir_events_routes,  weir_dashboard_page_routes, NULL,
};

const struct weir_service weir_service_dashboard = {
    .name = "dashboard",
    .needs = "use",
    .routes = dashboard_routes,
    .open = dashboard_open,
    .start = dashboard_start,
    .metrics = weir_dashboard_metrics,
    .drain = dashboard_drain,
    .close = dashboard_close,
};
