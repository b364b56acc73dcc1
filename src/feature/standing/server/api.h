/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/standing of the admin listener: lists, shows, sets and clears standing, and shows its
 * history. See docs/standing.md. */
#ifndef WEIR_FEATURE_STANDING_SERVER_API_H
#define WEIR_FEATURE_STANDING_SERVER_API_H

#include "server/http/http.h"

extern const struct weir_http_route weir_standing_routes[];

#endif
