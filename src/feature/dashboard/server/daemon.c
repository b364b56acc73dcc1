/* SPDX-License-Identifier: Apache-2.0 */
/* see daemon.h */
#include "feature/dashboard/server/daemon.h"

#include "feature/dashboard/server/dashboard_page.h"
#include "feature/dashboard/server/events_api.h"
#include "feature/dashboard/server/metrics.h"
#include "feature/dashboard/server/rules_api.h"
#include "feature/dashboard/server/session_api.h"
#include "server/daemon/daemon.h"

static int dashboard_open(struct weir_daemon *daemon, struct weir_reason *reason)
{
    return weir_dashboard_open(&daemon->dashboard, daemon, reason);
}

static int dashboard_start(struct weir_daemon *daemon, struct weir_reason *reason)
{
    weir_dashboard_start(daemon->dashboard, daemon->admin->loop);
    return 0;
}

static void dashboard_close(struct weir_daemon *daemon)
{
    weir_dashboard_close(daemon->dashboard);
    daemon->dashboard = NULL;
}

static const struct weir_http_route *const dashboard_routes[] = {
    weir_session_routes, weir_rules_routes, weir_events_routes, weir_dashboard_page_routes, NULL,
};

const struct weir_service weir_service_dashboard = {
    .name = "dashboard",
    .routes = dashboard_routes,
    .open = dashboard_open,
    .start = dashboard_start,
    .metrics = weir_metrics_of_dashboard,
    .close = dashboard_close,
};
