/* SPDX-License-Identifier: Apache-2.0 */
/* GET /v1/series: time series of a limit, of all limits, or of the whole. See docs/use.md. */
#ifndef WEIR_FEATURE_USE_SERVER_SERIES_SERIES_API_H
#define WEIR_FEATURE_USE_SERVER_SERIES_SERIES_API_H

#include "feature/use/server/query.h"

extern const struct weir_http_route weir_series_routes[];

#endif
