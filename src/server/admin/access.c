/* SPDX-License-Identifier: Apache-2.0 */
/* Who may use the admin listener. See http/http.h and docs/http-api.md.
 *
 * - Host, Origin, Sec-Fetch-Site: a page of any site can let its name point to this machine (DNS
 *   rebinding) and send requests from a browser here. So a request must name a host of this
 *   listener, and come from no page of another origin.
 * - Token: where one is set, everything but health and the files of pages needs it, or the cookie
 * of a session that it has begun (feature/dashboard/server/session_cookie.h).
 * - Peer: without a token, only this machine may read: by loopback, or by a Unix socket.
 * - Changes: a browser sends a cookie with whatever a page asks for, and reaches what this machine
 *   may reach. So a change without a token of its own comes from a page of exactly this origin
 * (name and port); without a token set, it comes through a Unix socket.
 */
#include "server/admin/access.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/bytes.h"
#include "core/text/address.h"
#include "feature/dashboard/server/session_cookie.h"
#include "rules/match/host.h"
#include "server/http/reply.h"
#include "server/http/request.h"

static bool is_loopback(const struct weir_address *address)
{
    static const struct weir_cidr loopback4 = {{4, {127}}, 8}, loopback6 = {{6, {[15] = 1}}, 128};
    return weir_cidr_contains(&loopback4, address) || weir_cidr_contains(&loopback6, address);
}

/* Whether the peer has come through a Unix socket, and no proxy says for whom. */
static bool through_unix(const struct weir_connection *connection)
{
    return connection->listener->unix_socket && connection->peer.family == 0;
}

/* Whether an address is one of loopback, or that which the connection came to. */
static bool address_is_ours(const struct weir_connection *connection,
                            const struct weir_address *address)
{
    struct weir_address own;
    if (is_loopback(address))
        return true;
    return weir_connection_own_address(connection, &own) && own.family == address->family &&
           !memcmp(own.bytes, address->bytes, own.family == 4 ? 4 : 16);
}

/* Whether a host, in its normal form, is one that this listener goes by. */
static bool host_is_ours(const struct weir_connection *connection, struct weir_bytes host)
{
    const struct weir_listener_settings *settings = weir_listener_settings(connection->listener);
    struct weir_address address;
    for (uint32_t i = 0; i < settings->host_count; i++)
        if (weir_bytes_are(host, settings->hosts[i]))
            return true;
    bool brackets = host.size > 2 && host.data[0] == '[';
    if (weir_address_parse(&address, host.data + brackets, host.size - 2 * (size_t)brackets) == 0)
        return address_is_ours(connection, &address);
    return weir_bytes_are(host, "localhost");
}

/* What a Host or Origin says, normal; data == NULL: nothing that can be read. */
static struct weir_bytes host_read(struct weir_bytes raw, char room[WEIR_HOST_MAX])
{
    struct weir_bytes host;
    return weir_host_normalise(&host, raw, room, NULL) == 0 ? host : (struct weir_bytes){NULL, 0};
}

/* The host of "https://host:port"; data == NULL for "null" and whatever else names none. */
static struct weir_bytes origin_read(struct weir_bytes origin, char room[WEIR_HOST_MAX])
{
    const char *slashes = memmem(origin.data, origin.size, "://", 3);
    if (!slashes)
        return (struct weir_bytes){NULL, 0};
    size_t scheme = (size_t)(slashes + 3 - origin.data);
    return host_read((struct weir_bytes){origin.data + scheme, origin.size - scheme}, room);
}

/* A name in a request that is not one of this listener. */
struct wrong_name {
    const char *what; /* where it stands */
    struct weir_bytes name;
};

static bool refuse_name(struct weir_http_call *call, const struct wrong_name *wrong)
{
    char detail[200];
    int shown = wrong->name.size < 80 ? (int)wrong->name.size : 80;
    snprintf(detail, sizeof detail,
             "%s %.*s is not a name of this listener: use its address, or add the name to "
             "server.admin.hosts",
             wrong->what, shown, wrong->name.data);
    weir_http_problem(call, WEIR_HTTP_403, NULL, detail);
    return false;
}

/* Whether a header field gives the token itself, which no page of another site can do. */
static bool carries_token(const struct weir_http_call *call)
{
    struct weir_bytes bearer = weir_http1_field(call->request, "authorization");
    return weir_http1_field(call->request, "x-weir-token").data ||
           (bearer.size >= 7 && !strncasecmp(bearer.data, "Bearer ", 7));
}

/* Browsers always say which languages they read, and let no page leave that out; a proxy may. What
 * only they send is enough: an Origin, or Fetch Metadata (W3C). Programs that talk to Unix sockets
 * send none of them. */
static bool is_browser(const struct weir_http_call *call)
{
    static const char *const fields[] = {"accept-language", "origin",         "sec-fetch-site",
                                         "sec-fetch-mode",  "sec-fetch-dest", "sec-fetch-user"};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (weir_http1_field(call->request, fields[i]).data)
            return true;
    return false;
}

/* A browser sends a Host always, and an Origin with what may change something. Clients that send no
 * Host (HTTP/1.0) are no browsers. Programs on a Unix socket may send any; but a browser comes to
 * one through a proxy or a forwarded port, and its Host has to be ours like on TCP. */
static bool names_admit(const struct weir_http_call *call, struct wrong_name *wrong)
{
    const struct weir_connection *connection = call->connection;
    struct weir_bytes raw = call->request->host;
    struct weir_bytes origin = weir_http1_field(call->request, "origin");
    char host_room[WEIR_HOST_MAX], origin_room[WEIR_HOST_MAX];
    struct weir_bytes host = host_read(raw, host_room);
    bool ours = host.data && host_is_ours(connection, host);
    *wrong = (struct wrong_name){"the Host", raw};
    if (raw.size && !ours && (!connection->listener->unix_socket || is_browser(call)))
        return false;
    if (!origin.data)
        return true;
    struct weir_bytes from = origin_read(origin, origin_room);
    bool same = from.data && host.data && from.size == host.size &&
                !memcmp(from.data, host.data, host.size);
    *wrong = (struct wrong_name){"the Origin", origin};
    return same || (from.data && host_is_ours(connection, from));
}

/* Whether a page of another site or port asks, by what browsers say (Fetch Metadata, W3C). A person
 * who follows a link may come from anywhere; a frame within another page is none. */
static bool is_foreign(const struct weir_http_call *call)
{
    struct weir_bytes site = weir_http1_field(call->request, "sec-fetch-site");
    struct weir_bytes mode = weir_http1_field(call->request, "sec-fetch-mode");
    struct weir_bytes dest = weir_http1_field(call->request, "sec-fetch-dest");
    bool link =
        weir_bytes_are(mode, "navigate") && (!dest.data || weir_bytes_are(dest, "document"));
    return site.data && !weir_bytes_are(site, "same-origin") && !weir_bytes_are(site, "none") &&
           !link;
}

/* Whether the Origin is exactly that of the listener's own pages, as the browser names it. */
static bool is_same_origin(const struct weir_http_call *call)
{
    struct weir_bytes origin = weir_http1_field(call->request, "origin");
    struct weir_bytes host = call->request->host;
    const char *slashes = origin.data ? memmem(origin.data, origin.size, "://", 3) : NULL;
    if (!slashes)
        return false;
    size_t scheme = (size_t)(slashes + 3 - origin.data);
    return origin.size - scheme == host.size && host.size > 0 &&
           !strncasecmp(origin.data + scheme, host.data, host.size);
}

bool weir_admin_is_own_page(struct weir_http_call *call)
{
    struct wrong_name wrong;
    if (!names_admit(call, &wrong))
        return refuse_name(call, &wrong);
    if (carries_token(call))
        return true;
    bool reads = weir_http_method_is(call, "GET") || weir_http_method_is(call, "HEAD");
    bool other = !reads && weir_http1_field(call->request, "origin").data && !is_same_origin(call);
    if (!is_foreign(call) && !other)
        return true;
    weir_http_problem(call, WEIR_HTTP_403, NULL,
                      "a page of another site or port may not ask this listener");
    return false;
}

/* Whether who sends no token may read, where none is set. */
static bool is_near(const struct weir_http_call *call,
                    const struct weir_listener_settings *settings)
{
    return through_unix(call->connection) || is_loopback(&call->connection->peer) ||
           settings->tls.client_ca_file;
}

/* Whether the caller has shown the token, in a field or by a session. A wrong field counts,
 * whatever the cookie. */
static bool has_shown(struct weir_http_call *call, const char *token)
{
    unsigned char id[WEIR_SESSION_ID_BYTES];
    return carries_token(call) ? weir_http_has_token(call, token)
                               : weir_session_find(call, token, id);
}

bool weir_admin_may_read(struct weir_http_call *call)
{
    const struct weir_listener_settings *settings =
        weir_listener_settings(call->connection->listener);
    struct wrong_name wrong;
    return names_admit(call, &wrong) &&
           (settings->token ? has_shown(call, settings->token) : is_near(call, settings));
}

bool weir_admin_admit(struct weir_http_call *call, const struct weir_http_route *route)
{
    const struct weir_listener_settings *settings =
        weir_listener_settings(call->connection->listener);
    if ((route->flags & WEIR_ROUTE_PUBLIC) != 0 ||
        ((route->flags & WEIR_ROUTE_METRICS) != 0 && settings->metrics_open))
        return true;
    if (!weir_admin_is_own_page(call))
        return false;
    if (settings->token) {
        if (has_shown(call, settings->token))
            return true;
        weir_http_problem(call, WEIR_HTTP_401, "WWW-Authenticate: Bearer\r\n",
                          "send the admin token: `Authorization: Bearer TOKEN`");
        return false;
    }
    if (is_near(call, settings))
        return true;
    weir_http_problem(call, WEIR_HTTP_403, NULL,
                      "other machines may only read health: set server.admin.token and send "
                      "it, or, for /metrics alone, set server.admin.metrics_open: true");
    return false;
}

struct weir_bytes weir_admin_who(const struct weir_http_call *call, struct weir_bytes given)
{
    const char *token = weir_listener_settings(call->connection->listener)->token;
    struct weir_bytes name =
        carries_token(call) ? (struct weir_bytes){NULL, 0} : weir_session_name(call, token);
    return name.size > 0 ? name : given;
}

bool weir_admin_can_change(struct weir_http_call *call, const char **why)
{
    const struct weir_connection *connection = call->connection;
    bool token = weir_listener_settings(connection->listener)->token != NULL;
    *why = "changes require server.admin.token or a Unix socket";
    return token || through_unix(connection); /* a token was asked for already */
}

bool weir_admin_may_change(struct weir_http_call *call)
{
    const struct weir_listener_settings *settings =
        weir_listener_settings(call->connection->listener);
    const char *why;
    bool can = weir_admin_can_change(call, &why);
    /* A browser sends an Origin with each change; one by a cookie comes from a browser. */
    if (can && settings->token && !carries_token(call) && !is_same_origin(call)) {
        can = false;
        why = "a change by a session needs the Origin of the dashboard's own page";
    }
    if (!can)
        weir_http_problem(call, WEIR_HTTP_403, NULL, why);
    return can;
}
