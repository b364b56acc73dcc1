/* SPDX-License-Identifier: Apache-2.0 */
/* What the client sees of a decision: header fields on every answer, and the denial itself.
 *
 * A denial with an `error_page` for its status goes there, as any status of nginx; else it has the
 * body that weir's HTTP front gives it.
 */
#ifndef WEIR_NGINX_REPLY_H
#define WEIR_NGINX_REPLY_H

#include "nginx/request.h"

/* Adds lines "Name: value\r\n" to the answer. Errors: NGX_ERROR (memory). */
ngx_int_t weir_ngx_add_fields(ngx_http_request_t *r, const char *fields, size_t size);

/* Ends the request with its denial. Returns what the phase handler returns. */
ngx_int_t weir_ngx_deny(ngx_http_request_t *r, const struct weir_ngx_request *request);

#endif
