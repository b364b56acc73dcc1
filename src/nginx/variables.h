/* SPDX-License-Identifier: Apache-2.0 */
/* $weir_verdict, $weir_denied_by, $weir_action, $weir_remaining, $weir_retry_after, $weir_delay_ms,
 * $weir_cost, $weir_standing: what weir said of the request, for log_format, map and
 * proxy_set_header. Empty where it said nothing. */
#ifndef WEIR_NGINX_VARIABLES_H
#define WEIR_NGINX_VARIABLES_H

#include "nginx/conf.h"

ngx_int_t weir_ngx_variables_add(ngx_conf_t *cf);

#endif
