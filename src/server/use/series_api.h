/* SPDX-License-Identifier: Apache-2.0 */
/* GET /v1/series: time series of a limit, of all limits, or of the whole. See docs/use.md. */
#ifndef WEIR_SERVER_USE_SERIES_API_H
#define WEIR_SERVER_USE_SERIES_API_H

#include "server/use/query.h"

extern const struct weir_http_route weir_series_routes[];

#endif
