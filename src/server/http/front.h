/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP listeners: decisions, admin, challenges, and Prometheus for Envoy's service. Parses a
 * request, routes it by its path, and runs its handler. See http.h. */
#ifndef WEIR_SERVER_HTTP_FRONT_H
#define WEIR_SERVER_HTTP_FRONT_H

#include "server/net/front.h"

extern const struct weir_front weir_http_front, weir_admin_front, weir_envoy_prometheus_front,
    weir_challenge_front;

#endif
