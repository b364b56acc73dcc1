/* SPDX-License-Identifier: Apache-2.0 */
/* The phase handlers: a request is decided once, and may have to wait.
 *
 *   decided ─ allowed ───────────────▶ goes on
 *           ─ allowed, with a delay ─▶ waits ─ timer ─▶ goes on
 *                                        └─ the client leaves ─▶ given back (request.h)
 *           ─ denied ────────────────▶ answered
 *           ─ denied, with a tarpit ─▶ waits ─ timer ─▶ answered
 *
 * Only main requests are decided, so that subrequests charge nothing. Waiting is a timer, as that
 * of limit_req; the connection is read meanwhile to notice that the client leaves.
 */
#ifndef WEIR_NGINX_DECIDE_H
#define WEIR_NGINX_DECIDE_H

#include "nginx/conf.h"

ngx_int_t weir_ngx_preaccess(ngx_http_request_t *r);
ngx_int_t weir_ngx_precontent(ngx_http_request_t *r);

#endif
