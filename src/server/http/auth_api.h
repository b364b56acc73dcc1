/* SPDX-License-Identifier: Apache-2.0 */
/* The endpoint of nginx' auth_request, Traefik's forwardAuth and others. See docs/http-api.md. */
#ifndef WEIR_SERVER_HTTP_AUTH_API_H
#define WEIR_SERVER_HTTP_AUTH_API_H

#include "server/http/http.h"

void weir_auth_handle(struct weir_http_call *call);

#endif
