/* SPDX-License-Identifier: Apache-2.0 */
/* GET /v1/events: the live snapshots of the dashboard as server-sent events (stream.h); with
 * `?parts=whole,limits` only these parts of them (snapshot.h). */
#ifndef WEIR_FEATURE_DASHBOARD_SERVER_EVENTS_API_H
#define WEIR_FEATURE_DASHBOARD_SERVER_EVENTS_API_H

#include "server/http/route.h"

extern const struct weir_http_route weir_events_routes[];

#endif
