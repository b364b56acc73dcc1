/* SPDX-License-Identifier: Apache-2.0 */
/* Logging in with the admin token, for browsers: EventSource and links cannot send an
 * Authorization.
 *
 *   GET    /v1/session                  what the caller may do: {"may_read", "may_change", …}
 *   POST   /v1/session {"token": "…", "name": "…"}   begins a session, of a person if it has a
 * name; the reply sets its cookie DELETE /v1/session                  ends it
 *
 * The cookie is HttpOnly and SameSite=Strict, and Secure where the browser has come by TLS, to
 * this listener or to a proxy in front (session_cookie.h). A wrong token is a guess like one in a
 * header (net/guesses.h).
 *
 * Threads: the admin worker's.
 */
#ifndef WEIR_FEATURE_DASHBOARD_SERVER_SESSION_API_H
#define WEIR_FEATURE_DASHBOARD_SERVER_SESSION_API_H

#include "server/http/http.h"

extern const struct weir_http_route weir_session_routes[];

#endif
