/* SPDX-License-Identifier: Apache-2.0 */
/* POST /v1/identities/forget. */
#ifndef WEIR_SERVER_ADMIN_FORGET_API_H
#define WEIR_SERVER_ADMIN_FORGET_API_H

#include "server/http/http.h"

extern const struct weir_http_route weir_forget_routes[];

#endif
