/* SPDX-License-Identifier: Apache-2.0 */
/* see events_api.h */
#include "feature/dashboard/server/events_api.h"

#include "core/bytes.h"
#include "feature/dashboard/server/daemon.h"
#include "feature/dashboard/server/dashboard.h"
#include "feature/dashboard/server/session_cookie.h"
#include "feature/dashboard/server/snapshot.h"
#include "server/daemon/daemon.h"
#include "server/http/reply.h"
#include "server/http/request.h"

/* Without a query: all parts. Names of parts need no percent-encoding, except the commas. */
static bool read_parts(struct weir_bytes query, unsigned *parts)
{
    struct weir_bytes name, value;
    char text[128];
    *parts = WEIR_SNAPSHOT_ALL;
    while (weir_http_next_parameter(&query, &name, &value)) {
        long size = value.size <= sizeof text ? weir_http_decode(value, text) : -1;
        if (!weir_bytes_are(name, "parts") || size < 0 ||
            !weir_snapshot_parts_read((struct weir_bytes){text, (size_t)size}, parts))
            return false;
    }
    return true;
}

static void events_handle(struct weir_http_call *call)
{
    const struct weir_daemon *daemon = call->http->server;
    const char *token = weir_listener_settings(call->connection->listener)->token;
    unsigned char id[WEIR_SESSION_ID_BYTES];
    unsigned parts;
    if (!read_parts(call->request->query, &parts)) {
        weir_http_problem(call, WEIR_HTTP_400, NULL,
                          "query: use parts=, with some of whole, limits, keys, callers, denied, "
                          "denials, table, store, and commas between");
        return;
    }
    bool by_session = weir_session_find(call, token, id);
    weir_stream_join(&weir_daemon_dashboard(daemon)->stream, call, by_session ? id : NULL, parts);
}

const struct weir_http_route weir_events_routes[] = {
    {"/v1/events", "events", "GET", "the live stream of the dashboard", events_handle, 0},
    {.path = NULL},
};
