/* SPDX-License-Identifier: Apache-2.0 */
/* Access logs with a JSON object a line: Caddy's and Traefik's.
 *
 *   {"level":"info","ts":1646861401.52,"logger":"http.log.access","request":{"remote_ip":"192.0.2.1",
 *    "client_ip":"192.0.2.1","method":"GET","host":"a","uri":"/","headers":{"User-Agent":["x"]}},
 *    "user_id":"","duration":0.0009,"status":200,…}
 *   {"ClientHost":"192.0.2.1","RequestMethod":"GET","RequestPath":"/","RequestHost":"a",
 *    "StartUTC":"2024-01-01T00:00:00.1Z","Duration":929675,"DownstreamStatus":200,…}
 *
 * Sources: Caddy 2, "How Logging Works" and caddyhttp.LoggableHTTPRequest; Traefik 3, "Access logs"
 * and pkg/middlewares/accesslog/logdata.go.
 *
 * The time is when the request came: Caddy's `ts` less its `duration`, Traefik's StartUTC. The
 * client is what the server makes of its proxies (`client_ip`, ClientHost), if it writes that.
 * Caddy logs header fields, Traefik if it is set to (`request_NAME`). A value that they have
 * hidden ("REDACTED") is left out: all would be one key. Lines of the server about itself, which
 * have no such request, are WEIR_LOG_OTHER. Members that are not named here are skipped.
 */
#ifndef WEIR_WIRE_LOG_JSON_LOG_H
#define WEIR_WIRE_LOG_JSON_LOG_H

#include "wire/log/record.h"

/* Each returns 0, WEIR_LOG_OTHER, or WEIR_ERR_SYNTAX or WEIR_ERR_RANGE with `reason`, which may be
 * NULL and names the member. At most WEIR_CHECK_JSON_PAIRS_MAX header fields are kept. */
int weir_caddy_line_parse(struct weir_log_record *record, char *text, size_t size,
                          struct weir_log_room *room, struct weir_reason *reason)
    __attribute__((warn_unused_result));
int weir_traefik_line_parse(struct weir_log_record *record, char *text, size_t size,
                            struct weir_log_room *room, struct weir_reason *reason)
    __attribute__((warn_unused_result));

#endif
