/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/health: signals that an operator or a backend pushes, and what the controllers make of all
 * signals. See docs/http-api.md. */
#ifndef WEIR_SERVER_ADMIN_HEALTH_API_H
#define WEIR_SERVER_ADMIN_HEALTH_API_H

#include "server/admin/exposition.h"
#include "server/http/http.h"

extern const struct weir_http_route weir_health_routes[];

extern const struct weir_metric_table weir_health_metrics[];

#endif
