/* SPDX-License-Identifier: Apache-2.0 */
/* see overlooked_api.h */
#include "server/admin/overlooked_api.h"

#include <inttypes.h>
#include <jansson.h>

#include "rules/unknown_names.h"
#include "server/admin/call.h"
#include "server/daemon/daemon.h"
#include "server/net/daemon.h"

/* A list; json_pack fails where it is NULL. */
static json_t *names_json(const struct weir_rules *rules)
{
    json_t *list = json_array();
    for (uint32_t i = 0; list && i <= RULES_UNKNOWN_MAX; i++) {
        struct weir_unknown_name name = weir_rules_unknown(rules, i);
        if (name.count > 0)
            json_array_append_new(list,
                                  json_pack("{s:s?, s:I, s:s?}", "name", name.name, "values",
                                            (json_int_t)name.count, "did_you_mean", name.near));
    }
    return list;
}

static void overlooked_handle(struct weir_http_call *call)
{
    struct weir_daemon *daemon = call->http->server;
    uint64_t untrusted = weir_counted(&weir_daemon_net(daemon)->overlooked.untrusted);
    char peer[WEIR_ADDRESS_TEXT_MAX];
    weir_overlooked_peer(&weir_daemon_net(daemon)->overlooked, peer);
    weir_admin_reply_json(call,
                          json_pack("{s:{s:I, s:s?}, s:o}", "untrusted_proxies", "requests",
                                    (json_int_t)untrusted, "peer", untrusted > 0 ? peer : NULL,
                                    "unknown_attributes", names_json(daemon->rules)));
}

const struct weir_http_route weir_overlooked_routes[] = {
    {"/v1/overlooked", "overlooked", "GET, HEAD", "what of requests was not taken",
     overlooked_handle, 0},
    {.path = NULL},
};

static bool read_numbers(struct weir_daemon *daemon, void *read)
{
    if (weir_daemon_net(daemon))
        *(uint64_t *)read = weir_counted(&weir_daemon_net(daemon)->overlooked.untrusted);
    return weir_daemon_net(daemon);
}

static void put_unread(struct weir_metrics *metrics, const struct weir_metric *metric,
                       const void *numbers)
{
    for (int i = 0; i < WEIR_UNREAD_FRONTS; i++)
        weir_metrics_value(metrics, metric,
                           weir_counted(&weir_daemon_net(metrics->daemon)->overlooked.unread[i]),
                           weir_overlooked_front_name((enum weir_overlooked_front)i));
}

static void put_unknown(struct weir_metrics *metrics, const struct weir_metric *metric,
                        const void *numbers)
{
    for (uint32_t i = 0; i <= RULES_UNKNOWN_MAX; i++) {
        struct weir_unknown_name name = weir_rules_unknown(metrics->daemon->rules, i);
        if (name.count > 0)
            weir_metrics_value(metrics, metric, name.count, name.name ? name.name : "");
    }
}

static const struct weir_metric rows[] = {
    {"weir_untrusted_proxy_requests_total", "counter", NULL,
     "Requests for /v1/auth that were refused because their sender is not in "
     "server.trusted_proxies.",
     .at = 0},
    {"weir_requests_unreadable_total", "counter", "front",
     "Requests of clients that were refused because they could not be read.", .put = put_unread},
    {"weir_unknown_attributes_total", "counter", "name",
     "Attributes in requests whose names are neither built in nor declared.", .put = put_unknown},
    {.name = NULL},
};
const struct weir_metric_table weir_overlooked_metrics[] = {
    {rows, read_numbers, sizeof(uint64_t)},
    {.rows = NULL},
};
