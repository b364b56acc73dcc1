/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of HAProxy's HTTP log (`option httplog`, `option httpslog`), with whatever prefix a syslog
 * daemon put before them:
 *
 *   Feb  6 12:14:14 host haproxy[14389]: 10.0.1.2:33317 [06/Feb/2009:12:14:14.655] http-in
 *     static/srv1 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 {1wt.eu} {} "GET / HTTP/1.1"
 *
 * Source: HAProxy 2.6, Configuration Manual, 8.2.3 (HTTP log format) and 8.2.5 (HTTPS).
 *
 * The time is that of the machine that wrote it, without a zone: it is read as UTC. It is when the
 * request came; the last of the five durations gives the time of the line. A line without that time
 * ("Proxy www started.", "Server www/a is DOWN"), or that ends before the termination state ("SSL
 * handshake failure"), is HAProxy's word about itself. A line that syslog cut off may end within
 * the request.
 */
#ifndef WEIR_WIRE_LOG_HAPROXY_LOG_H
#define WEIR_WIRE_LOG_HAPROXY_LOG_H

#include "wire/log/record.h"

/* Returns 0, WEIR_LOG_OTHER, or WEIR_ERR_SYNTAX, which leaves *record undefined. */
int weir_haproxy_line_parse(struct weir_log_record *record, char *text, size_t size)
    __attribute__((warn_unused_result));

#endif
