/* SPDX-License-Identifier: Apache-2.0 */
/* Envoy's service over HTTP: handlers of routes, and the listener for Prometheus.
 *
 *   /json         POST or any other method: ShouldRateLimit as JSON (wire/json/envoy_json.h)
 *                 200 OK, 429 over limit, 400 no such request, 500 the store failed, 503 overloaded
 *   /healthcheck  200 "OK", or 500 and nothing
 *   /rlconfig     the configuration in use, a line a limit
 *   /stats        every counter, a line each
 *   /             what is here
 *
 * The first two are on the http listener, the others on the admin listener; without the service all
 * are 404.
 */
#ifndef WEIR_FEATURE_ENVOY_SERVER_HTTP_H
#define WEIR_FEATURE_ENVOY_SERVER_HTTP_H

#include "server/http/http.h"

void weir_envoy_json_handle(struct weir_http_call *call);
void weir_envoy_healthcheck_handle(struct weir_http_call *call);
/* Of the admin listener, without its root. */
extern const struct weir_http_route weir_envoy_routes[];
void weir_envoy_root_handle(struct weir_http_call *call);
/* The service's metrics alone. */
void weir_envoy_prometheus_handle(struct weir_http_call *call);

#endif
