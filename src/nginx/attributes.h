/* SPDX-License-Identifier: Apache-2.0 */
/* The attributes of a request of nginx: those that the rules read, and no others.
 *
 * `method`, `path` (as the client sent it, like $request_uri; weir makes its normal form), `host`
 * (as $host without a name of the server's own: in lower case, without a port), `client.ip` (the
 * peer, or what realip made of it), `connection.requests`, header fields, and what `weir_attribute`
 * of the location says, which goes before all of these.
 */
#ifndef WEIR_NGINX_ATTRIBUTES_H
#define WEIR_NGINX_ATTRIBUTES_H

#include "nginx/worker.h"

/* Fills the call's values, which are the worker's or the request's memory. Errors: NGX_ERROR
 * (memory). */
ngx_int_t weir_ngx_attributes(ngx_http_request_t *r, struct weir_ngx_worker *worker,
                              struct weir_ngx_location *location, struct weir_call *call);

/* The address of the client, after realip; NULL: it comes over a Unix socket. */
const struct sockaddr *weir_ngx_client(const ngx_http_request_t *r);

#endif
