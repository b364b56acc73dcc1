/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/standing/lists of the admin listener: the list files in force, and what they have. See
 * docs/standing.md. */
#ifndef WEIR_FEATURE_STANDING_SERVER_LISTS_API_H
#define WEIR_FEATURE_STANDING_SERVER_LISTS_API_H

#include "server/http/route.h"

extern const struct weir_http_route weir_standing_lists_routes[];

#endif
