/* SPDX-License-Identifier: Apache-2.0 */
/* see events_api.h */
#include "feature/dashboard/server/events_api.h"

#include "feature/dashboard/server/dashboard.h"
#include "feature/dashboard/server/session_cookie.h"
#include "server/daemon/daemon.h"
#include "server/http/reply.h"
#include "server/http/request.h"

static void events_handle(struct weir_http_call *call)
{
    const struct weir_daemon *daemon = call->http->server;
    const char *token = weir_listener_settings(call->connection->listener)->token;
    unsigned char id[WEIR_SESSION_ID_BYTES];
    bool by_session = weir_session_find(call, token, id);
    weir_stream_join(&daemon->dashboard->stream, call, by_session ? id : NULL);
}

const struct weir_http_route weir_events_routes[] = {
    {"/v1/events", "events", "GET", "the live stream of the dashboard", events_handle, 0},
    {.path = NULL},
};
