/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of access logs in Apache's common and combined formats and in those that grew from them:
 *
 *   host ident user [07/Mar/2004:16:05:49 -0800] "GET /path HTTP/1.1" 401 12846     common
 *   … "referer" "agent"                                                            combined
 *   … "referer" "agent" "203.0.113.9, 10.0.0.2"                                    nginx's main
 *   … "referer" "agent" 512 0.003 [upstream] [] 10.0.0.5:80 612 0.002 200 id        ingress-nginx
 *   … "referer" "agent" 7 "router" "http://10.0.0.5:80" 3ms                         Traefik's CLF
 *   example.org:80 host ident user …                                               vhost_combined
 *
 * Sources: Apache 2.4, mod_log_config; nginx, ngx_http_log_module, and the log_format of
 * nginx.org's and Debian's packages; ingress-nginx,
 * docs/user-guide/nginx-configuration/log-format.md; Traefik 3,
 * pkg/middlewares/accesslog/logger_formatters.go.
 *
 * `host` may be a list with commas between, which a server writes that logs X-Forwarded-For in its
 * place. What follows the agent and is none of the above is skipped. A request that was none ("-",
 * or the bytes of a TLS client) has neither method nor target.
 */
#ifndef WEIR_WIRE_LOG_ACCESS_LOG_H
#define WEIR_WIRE_LOG_ACCESS_LOG_H

#include "wire/log/record.h"

/* Parses one line; white space at its end is skipped. `vhost`: the line begins with the virtual
 * host. The trailing fields set record->tail, and record->forwarded if they are X-Forwarded-For.
 * Returns 0 or WEIR_ERR_SYNTAX, which leaves *record undefined. */
int weir_access_line_parse(struct weir_log_record *record, char *text, size_t size, bool vhost,
                           struct weir_log_room *room) __attribute__((warn_unused_result));

#endif
