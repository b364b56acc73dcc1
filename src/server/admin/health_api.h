/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/health: signals that an operator or a backend pushes, and what the controllers make of all
 * signals. See docs/http-api.md. */
#ifndef WEIR_SERVER_ADMIN_HEALTH_API_H
#define WEIR_SERVER_ADMIN_HEALTH_API_H

#include "server/admin/exposition.h"
#include "server/http/http.h"

extern const struct weir_http_route weir_health_routes[];

/* The metrics of controllers; nothing where there are none. */
void weir_metrics_of_health(struct weir_metrics *metrics);

#endif
