/* SPDX-License-Identifier: Apache-2.0 */
/* The admin listener's own routes: health, metrics, limits. */
#ifndef WEIR_SERVER_ADMIN_API_H
#define WEIR_SERVER_ADMIN_API_H

#include "server/http/http.h"

extern const struct weir_http_route weir_admin_routes[];

#endif
