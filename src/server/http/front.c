/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of HTTP: reading, routing, who may call. See http.h. */
#include "server/http/front.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/bytes.h"
#include "core/text/hex.h"
#include "feature/challenge/server/front.h"
#include "feature/challenge/server/grant.h"
#include "feature/envoy/server/daemon.h"
#include "feature/envoy/server/http.h"
#include "feature/envoy/server/shared.h"
#include "server/adhoc/daemon.h"
#include "server/admin/access.h"
#include "server/daemon/daemon.h"
#include "server/http/auth_api.h"
#include "server/http/check_api.h"
#include "server/http/limit_api.h"
#include "server/http/reply.h"
#include "server/http/report_api.h"
#include "server/http/request.h"
#include "server/http/reserve_api.h"
#include "server/net/secret.h"

/* A parser between calls, in the connection. */
struct http_state {
    struct weir_http1_parser parser;
    bool body_begun;
};
_Static_assert(sizeof(struct http_state) <= WEIR_FRONT_STATE_BYTES, "grow WEIR_FRONT_STATE_BYTES");
_Static_assert(sizeof(struct weir_http1_request) <= WEIR_BUFFER_SIZE_MIN, "one buffer aside");

static const struct weir_http_route check_routes[] = {
    {"/v1/check", "check", NULL, NULL, weir_check_handle, 0},
    {"/v1/limit", "limit", NULL, NULL, weir_limit_handle, 0},
    {"/v1/auth", "auth", NULL, NULL, weir_auth_handle, WEIR_ROUTE_PREFIX},
    {"/v1/release", "release", NULL, NULL, weir_release_handle, 0},
    {"/v1/reserve", "reserve", NULL, NULL, weir_reserve_handle, 0},
    {"/v1/settle", "settle", NULL, NULL, weir_settle_handle, 0},
    {"/v1/report", "report", NULL, NULL, weir_report_handle, 0},
    {"/v1/challenge/grant", "challenge_grant", NULL, NULL, weir_challenge_grant_handle, 0},
    {"/json", "json", NULL, NULL, weir_envoy_json_handle, 0},
    {"/healthcheck", "healthcheck", NULL, NULL, weir_envoy_healthcheck_handle, WEIR_ROUTE_PUBLIC},
};

/* --- Routing ---------------------------------------------------------------------------------- */

/* Whether the caller may use the route; answers where not. A listener with a token wants it for
 * every route that is not public. */
static bool http_admit(struct weir_http_call *call, const struct weir_http_route *route)
{
    const struct weir_listener *listener = call->connection->listener;
    if (listener->kind == WEIR_LISTENER_ADMIN)
        return weir_admin_admit(call, route);
    const char *token = weir_listener_settings(listener)->token;
    if (!token || (route->flags & WEIR_ROUTE_PUBLIC) != 0 || weir_http_has_token(call, token))
        return true;
    weir_http_problem(call, WEIR_HTTP_401, "WWW-Authenticate: Bearer\r\n",
                      "missing or invalid token");
    return false;
}

static void http_route(struct weir_http_call *call)
{
    const struct weir_http_route *route = weir_http_route_find(call);
    if (!route) {
        weir_http_problem(call, WEIR_HTTP_404, NULL, NULL);
        return;
    }
    if (!http_admit(call, route))
        return;
    route = weir_http_route_allow(call, route);
    if (route)
        route->handle(call);
}

/* --- Reading ---------------------------------------------------------------------------------- */

/* Part of a request is there. What the parser knows of it moves from the worker's memory to the
 * connection's. Returns 0, or -1 when there is no memory for that. */
static long http_wait(struct weir_connection *connection, struct http_state *state,
                      const struct weir_http1_request *request)
{
    if (!connection->aside) {
        struct weir_buffers *buffers = &connection->worker->buffers;
        connection->aside = weir_buffer_take(buffers, sizeof *request);
        if (!connection->aside)
            return -1;
        memcpy(connection->aside->data, request, sizeof *request);
    }
    if (!state->parser.head_done || state->body_begun)
        return 0;
    state->body_begun = true;
    weir_connection_begin_body(connection);
    /* Behind replies that are still owed it would come in the wrong place; a client sends its body
     * after a moment anyway (RFC 9110 10.1.1). */
    if (request->expect_continue && !connection->first) {
        static const char line[] = "HTTP/1.1 100 Continue\r\n\r\n";
        struct weir_output nothing = {0};
        weir_connection_send(connection, &nothing, line, sizeof line - 1);
    }
    return 0;
}

static long http_parse(struct weir_connection *connection, char *data, size_t size)
{
    struct weir_http *http = weir_connection_workspace(connection);
    struct http_state *state = (struct http_state *)(void *)connection->front_state;
    struct weir_http1_request *request = &http->request;
    if (connection->aside)
        request = (struct weir_http1_request *)(void *)connection->aside->data;
    long n = weir_http1_parse(&state->parser, data, size, request);
    if (n == 0)
        return http_wait(connection, state, request);
    struct weir_http_call call = {
        .http = http, .connection = connection, .worker = connection->worker, .request = request};
    if (n > 0) {
        call.keep_alive = request->keep_alive && !connection->worker->draining;
        http_route(&call);
        if (__builtin_expect(call.hold_ms > 0, 0) && connection->last)
            weir_connection_hold(connection, call.hold_ms);
    } else {
        weir_count(&connection->worker->counters.protocol_errors, 1);
        call.route = (uint16_t)http->route_count;
        request->method = (struct weir_bytes){"", 0};
        weir_http_problem(&call, weir_http_status(state->parser.status), NULL,
                          state->parser.problem);
    }
    memset(state, 0, sizeof *state);
    if (connection->aside) {
        weir_buffer_give(&connection->worker->buffers, connection->aside);
        connection->aside = NULL;
    }
    return call.keep_alive ? n : -1;
}

static void http_cut(struct weir_connection *connection, enum weir_cut why,
                     struct weir_output *output)
{
    static const struct {
        enum weir_http_status status;
        const char *detail;
    } words[] = {
        [WEIR_CUT_TIMEOUT] = {WEIR_HTTP_408, "the request took too long to arrive"},
        [WEIR_CUT_BUSY] = {WEIR_HTTP_503, "too many connections"},
        [WEIR_CUT_TOO_LARGE] = {WEIR_HTTP_413, "the request is too large"},
    };
    struct weir_http *http = weir_connection_workspace(connection);
    enum weir_http_status status = words[why].status;
    char body[WEIR_PROBLEM_JSON_MAX];
    size_t size = weir_problem_json_write(WEIR_PROBLEM_BLANK, weir_http_code(status),
                                          words[why].detail, NULL, body);
    weir_worker_read_wall_clock(connection->worker);
    weir_http_begin(http, output, status, (uint16_t)http->route_count, WEIR_HTTP_CLOSE);
    weir_http_end(output, "application/problem+json", size);
    weir_output_put(output, body, size);
}

/* --- The front ends --------------------------------------------------------------------------- */

static struct weir_http *http_open(struct weir_worker *worker, void *server,
                                   const struct weir_http_route *routes, uint32_t route_count)
{
    struct weir_http *http = calloc(1, sizeof *http);
    if (!http)
        return NULL;
    http->worker = worker;
    http->server = server;
    http->routes = routes;
    http->route_count = route_count;
    return http;
}

static void http_close(void *workspace)
{
    struct weir_http *http = workspace;
    weir_envoy_close(http->envoy);
    weir_holds_free(&http->holds);
    free(http);
}

static void check_tick(void *workspace)
{
    weir_holds_tick(&((struct weir_http *)workspace)->holds);
}

static void *check_open(struct weir_worker *worker, void *server)
{
    const struct weir_daemon *daemon = server;
    struct weir_http *http =
        http_open(worker, server, check_routes, sizeof check_routes / sizeof *check_routes);
    if (http && daemon && weir_daemon_envoy(daemon) &&
        weir_envoy_open(&http->envoy, weir_daemon_envoy(daemon), worker, false) < 0) {
        free(http);
        return NULL;
    }
    if (http) {
        weir_holds_open(&http->holds, worker);
        weir_request_limits_open(&http->limits, worker,
                                 daemon ? weir_daemon_given_limits(daemon) : NULL);
    }
    return http;
}

static void *admin_open(struct weir_worker *worker, void *server)
{
    const struct weir_http_route *routes = ((const struct weir_daemon *)server)->routes;
    struct weir_http *http = http_open(worker, server, routes, weir_http_routes_count(routes));
    if (http)
        http->private = true;
    return http;
}

static const char *prometheus_address(const struct weir_daemon *daemon,
                                      const struct weir_settings *settings)
{
    return weir_daemon_envoy(daemon) && settings->envoy->prometheus ? settings->envoy->prometheus
                                                                    : "off";
}

/* One route, at the path that the configuration gives it. */
static void *prometheus_open(struct weir_worker *worker, void *server)
{
    const struct weir_daemon *daemon = server;
    struct weir_http *http = http_open(worker, server, NULL, 1);
    if (!http)
        return NULL;
    http->own_route =
        (struct weir_http_route){.path = weir_daemon_envoy(daemon)->settings.prometheus_path,
                                 .name = "prometheus",
                                 .flags = WEIR_ROUTE_PUBLIC,
                                 .handle = weir_envoy_prometheus_handle};
    http->routes = &http->own_route;
    return http;
}

static void *challenge_open(struct weir_worker *worker, void *server)
{
    struct weir_http *http =
        http_open(worker, server, weir_challenge_routes, WEIR_CHALLENGE_ROUTES);
    struct weir_challenge_work *work = http ? calloc(1, sizeof *work) : NULL;
    if (!work) {
        free(http);
        return NULL;
    }
    http->challenge = work;
    return http;
}

static void challenge_close(void *workspace)
{
    struct weir_http *http = workspace;
    free(http->challenge);
    free(http);
}

const struct weir_front weir_http_front = {
    .name = "http",
    .request_max = WEIR_HTTP1_REQUEST_MAX,
    .kind = WEIR_LISTENER_HTTP,
    .http = true,
    .setting = "server.http",
    .settings = offsetof(struct weir_settings, http),
    .option = offsetof(struct weir_server_options, http),
    .otherwise = WEIR_HTTP_ADDRESS_DEFAULT,
    .protocol = "http/1.1",
    .open = check_open,
    .close = http_close,
    .parse = http_parse,
    .cut = http_cut,
    .tick = check_tick,
};

const struct weir_front weir_admin_front = {
    .name = "admin",
    .request_max = WEIR_HTTP1_REQUEST_MAX,
    .kind = WEIR_LISTENER_ADMIN,
    .http = true,
    .setting = "server.admin",
    .settings = offsetof(struct weir_settings, admin),
    .option = offsetof(struct weir_server_options, admin),
    .otherwise = WEIR_ADMIN_ADDRESS_DEFAULT,
    .protocol = "http/1.1",
    .open = admin_open,
    .close = free,
    .parse = http_parse,
    .cut = http_cut,
};

const struct weir_front weir_envoy_prometheus_front = {
    .name = "prometheus",
    .request_max = WEIR_HTTP1_REQUEST_MAX,
    .kind = WEIR_LISTENER_ADMIN,
    .http = true,
    .setting = "envoy.prometheus",
    .settings = offsetof(struct weir_settings, admin),
    .anybody = true,
    .protocol = "http/1.1",
    .address = prometheus_address,
    .open = prometheus_open,
    .close = free,
    .parse = http_parse,
    .cut = http_cut,
};

const struct weir_front weir_challenge_front = {
    .name = "challenge",
    .request_max = WEIR_HTTP1_REQUEST_MAX,
    .kind = WEIR_LISTENER_CHALLENGE,
    .http = true,
    .setting = "challenge.listen",
    .settings = offsetof(struct weir_settings, challenge.listener),
    .anybody = true,
    .protocol = "http/1.1",
    .open = challenge_open,
    .close = challenge_close,
    .parse = http_parse,
    .cut = http_cut,
};
