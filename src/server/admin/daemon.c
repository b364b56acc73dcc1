/* SPDX-License-Identifier: Apache-2.0 */
/* see daemon.h */
#include "server/admin/daemon.h"

#include "server/admin/api.h"
#include "server/admin/limit_metrics.h"
#include "server/admin/metrics.h"
#include "server/admin/playground.h"
#include "server/explain/explain_api.h"
#include "server/http/front.h"

static const struct weir_http_route *const admin_routes[] = {
    weir_admin_routes,
    weir_explain_routes,
    weir_playground_routes,
    NULL,
};

static const struct weir_front *const admin_fronts[] = {&weir_admin_front, NULL};

const struct weir_service weir_service_admin = {
    .name = "admin",
    .routes = admin_routes,
    .fronts = admin_fronts,
    .metrics = weir_server_metrics,
};

const struct weir_service weir_service_limits = {
    .name = "limits",
    .metrics = weir_limits_metrics,
};
