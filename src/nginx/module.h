/* SPDX-License-Identifier: Apache-2.0 */
/* ngx_http_weir_module: limits decided in nginx's workers, by libweir. See docs/deploy/nginx.md.
 *
 *   module      directives, phases, processes
 *   worker      the state, its timer           attributes  values of a request
 *   check       of the configuration, before workers run
 *   decide      the phase handlers             request     what is kept until its end
 *   reply       fields, denials                variables, metrics
 */
#ifndef WEIR_NGINX_MODULE_H
#define WEIR_NGINX_MODULE_H

#include "nginx/conf.h"

/* What nginx looks for in the file. */
#pragma GCC visibility push(default)
extern ngx_module_t *ngx_modules[];
extern char *ngx_module_names[];
extern char *ngx_module_order[];
#pragma GCC visibility pop

#endif
