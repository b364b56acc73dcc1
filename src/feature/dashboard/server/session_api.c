/* SPDX-License-Identifier: Apache-2.0 */
/* see session_api.h */
#include "feature/dashboard/server/session_api.h"

#include <jansson.h>
#include <stdio.h>
#include <strings.h>
#include <sys/random.h>

#include "core/bytes.h"
#include "core/text/hex.h"
#include "feature/dashboard/server/daemon.h"
#include "feature/dashboard/server/dashboard.h"
#include "feature/dashboard/server/session_cookie.h"
#include "feature/standing/server/daemon.h"
#include "feature/standing/settings.h"
#include "server/admin/access.h"
#include "server/admin/call.h"
#include "server/daemon/clock.h"
#include "server/daemon/daemon.h"
#include "server/http/reply.h"
#include "server/http/request.h"
#include "server/net/guesses.h"
#include "server/net/secret.h"

#define ID_DIGITS (2 * (size_t)WEIR_SESSION_ID_BYTES)

static struct weir_dashboard *dashboard_of(const struct weir_http_call *call)
{
    const struct weir_daemon *daemon = call->http->server;
    return weir_daemon_dashboard(daemon);
}

static const char *token_of(const struct weir_http_call *call)
{
    return weir_listener_settings(call->connection->listener)->token;
}

/* --- The cookie ------------------------------------------------------------------------------- */

/* Whether the browser has come by TLS: here, or to a proxy in front, as the Origin of its page
 * shows. */
static bool is_secure(const struct weir_http_call *call)
{
    struct weir_bytes origin = weir_http1_field(call->request, "origin");
    return call->connection->tls || (origin.size > 8 && !strncasecmp(origin.data, "https://", 8));
}

/* The line that sets the cookie; `id` NULL: that removes it. */
static void cookie_line(const struct weir_http_call *call, const unsigned char *id, char *line,
                        size_t room)
{
    char name[WEIR_SESSION_COOKIE_MAX], digits[ID_DIGITS + 1] = "";
    weir_session_cookie_name(call, name);
    if (id)
        *weir_hex_write(digits, id, WEIR_SESSION_ID_BYTES) = 0;
    snprintf(line, room, "Set-Cookie: %s=%s; Path=/; Max-Age=%d; HttpOnly; SameSite=Strict%s\r\n",
             name, digits, id ? WEIR_SESSION_S : 0, is_secure(call) ? "; Secure" : "");
}

/* --- The calls -------------------------------------------------------------------------------- */

/* The kinds of callers that standing knows; null: the server has none. */
static json_t *standing_json(const struct weir_daemon *daemon)
{
    const struct weir_standing_settings *settings = weir_rules_settings(daemon->rules)->standing;
    json_t *kinds = weir_daemon_standing(daemon) ? json_array() : json_null();
    for (size_t i = 0; i < settings->kinds_count && weir_daemon_standing(daemon); i++)
        json_array_append_new(
            kinds, json_stringn(settings->kinds[i].name.data, settings->kinds[i].name.size));
    return kinds;
}

static void show(struct weir_http_call *call)
{
    const struct weir_daemon *daemon = call->http->server;
    const char *why = NULL;
    unsigned char id[WEIR_SESSION_ID_BYTES];
    bool may_read = weir_admin_may_read(call);
    bool may_change = may_read && weir_admin_can_change(call, &why);
    json_t *json = json_pack("{s:b, s:b, s:b, s:b}", "token", token_of(call) != NULL, "session",
                             weir_session_find(call, token_of(call), id), "may_read", may_read,
                             "may_change", may_change);
    struct weir_bytes name = weir_session_name(call, token_of(call));
    if (json && may_read)
        json_object_set_new(json, "standing", standing_json(daemon));
    if (json && name.size > 0)
        json_object_set_new(json, "name", json_stringn(name.data, name.size));
    weir_admin_reply_json(call, json);
}

static void refuse_guess(struct weir_http_call *call)
{
    struct weir_guess guess = weir_guess_of(call->connection, false);
    call->hold_ms = guess.wait_ms;
    call->keep_alive &= !guess.last;
    weir_http_problem(call, WEIR_HTTP_401, NULL, "that is not the admin token");
}

static void begin(struct weir_http_call *call, struct weir_bytes given, struct weir_bytes person)
{
    struct weir_dashboard *dashboard = dashboard_of(call);
    unsigned char id[WEIR_SESSION_ID_BYTES];
    char line[160];
    if (!weir_secret_equal(given, token_of(call))) {
        refuse_guess(call);
        return;
    }
    call->connection->guesses = 0;
    if (!dashboard || getrandom(id, sizeof id, 0) != (ssize_t)sizeof id) {
        weir_http_problem(call, WEIR_HTTP_500, NULL, "the system gives no random numbers");
        return;
    }
    weir_sessions_begin(&dashboard->sessions, id, token_of(call), person, weir_clock_boot_ns());
    cookie_line(call, id, line, sizeof line);
    weir_http_reply(call, WEIR_HTTP_200, line, "application/json", "{\"session\":true}", 16);
}

static void log_in(struct weir_http_call *call)
{
    struct weir_bytes text = call->request->body;
    if (!weir_http_json_post(call))
        return;
    if (!token_of(call)) {
        weir_http_problem(call, WEIR_HTTP_409, NULL,
                          "this listener has no token: there is nothing to log in to");
        return;
    }
    json_t *body = json_loadb(text.data ? text.data : "", text.size, JSON_REJECT_DUPLICATES, NULL);
    const json_t *token = json_object_get(body, "token"), *name = json_object_get(body, "name");
    struct weir_bytes person =
        weir_bytes_trim((struct weir_bytes){json_string_value(name), json_string_length(name)});
    if (!json_is_string(token) || (name && !json_is_string(name)))
        weir_http_problem(call, WEIR_HTTP_400, NULL, "send {\"token\": \"…\", \"name\": \"…\"}");
    else if (!weir_session_name_is_fine(person))
        weir_http_problem(call, WEIR_HTTP_400, NULL,
                          "name: up to 64 bytes, without control characters");
    else
        begin(call, (struct weir_bytes){json_string_value(token), json_string_length(token)},
              person);
    json_decref(body);
}

static void log_out(struct weir_http_call *call)
{
    struct weir_dashboard *dashboard = dashboard_of(call);
    unsigned char id[WEIR_SESSION_ID_BYTES];
    struct weir_bytes field = weir_http1_field(call->request, "cookie");
    char line[160], name[WEIR_SESSION_COOKIE_MAX];
    bool ended = false;
    weir_session_cookie_name(call, name);
    while (dashboard && weir_session_cookie_next(&field, name, id))
        ended |= weir_sessions_end(&dashboard->sessions, id);
    if (!ended) {
        weir_http_problem(call, WEIR_HTTP_404, NULL, "there is no such session");
        return;
    }
    cookie_line(call, NULL, line, sizeof line);
    weir_http_reply(call, WEIR_HTTP_200, line, "application/json", "{\"session\":false}", 17);
}

static void show_handle(struct weir_http_call *call)
{
    if (weir_admin_is_own_page(call))
        show(call);
}

static void log_in_handle(struct weir_http_call *call)
{
    if (weir_admin_is_own_page(call))
        log_in(call);
}

static void log_out_handle(struct weir_http_call *call)
{
    if (weir_admin_is_own_page(call))
        log_out(call);
}

const struct weir_http_route weir_session_routes[] = {
    {"/v1/session", "session", "GET", "what the caller may do", show_handle, WEIR_ROUTE_PUBLIC},
    {"/v1/session", "session", "POST", "logs a browser in by the token", log_in_handle,
     WEIR_ROUTE_PUBLIC},
    {"/v1/session", "session", "DELETE", "logs it out", log_out_handle, WEIR_ROUTE_PUBLIC},
    {.path = NULL},
};
