/* SPDX-License-Identifier: Apache-2.0 */
/* see overlooked_api.h */
#include "server/admin/overlooked_api.h"

#include <jansson.h>

#include "server/admin/api.h"
#include "server/daemon/daemon.h"

void weir_overlooked_handle(struct weir_http_call *call)
{
    struct weir_daemon *daemon = call->http->server;
    uint64_t untrusted = weir_counted(&daemon->overlooked.untrusted);
    char peer[WEIR_ADDRESS_TEXT_MAX];
    weir_overlooked_peer(&daemon->overlooked, peer);
    weir_admin_reply_json(call,
                          json_pack("{s:{s:I, s:s?}}", "untrusted_proxies", "requests",
                                    (json_int_t)untrusted, "peer", untrusted > 0 ? peer : NULL));
}

void weir_metrics_of_overlooked(struct weir_metrics *metrics)
{
    weir_metrics_number(metrics, "weir_untrusted_proxy_requests_total", "counter",
                        "Requests for /v1/auth that were refused because their sender is not in "
                        "server.trusted_proxies.",
                        weir_counted(&metrics->daemon->overlooked.untrusted));
}
