/* SPDX-License-Identifier: Apache-2.0 */
/* The routes of the admin listener. */
#ifndef WEIR_SERVER_ADMIN_API_H
#define WEIR_SERVER_ADMIN_API_H

#include "server/http/http.h"

extern const struct weir_http_route weir_admin_routes[];
extern const uint32_t weir_admin_route_count;

#endif
