/* SPDX-License-Identifier: Apache-2.0 */
/* Logging in with the admin token, for browsers: EventSource and links cannot send an
 * Authorization.
 *
 *   GET    /v1/session                  what the caller may do: {"may_read", "may_change", …}
 *   POST   /v1/session {"token": "…"}   begins a session; the reply sets its cookie
 *   DELETE /v1/session                  ends it
 *
 * The cookie is HttpOnly and SameSite=Strict, and Secure where the browser has come by TLS, to
 * this listener or to a proxy in front. Its name ends with the port that the browser asked for,
 * because cookies do not keep ports of one host apart (RFC 6265 8.5), and operators forward several
 * nodes to ports of their own machine. A wrong token is a guess like one in a header
 * (net/guesses.h).
 *
 * Threads: the admin worker's.
 */
#ifndef WEIR_SERVER_DASHBOARD_SESSION_API_H
#define WEIR_SERVER_DASHBOARD_SESSION_API_H

#include "server/dashboard/sessions.h"
#include "server/http/http.h"

void weir_session_handle(struct weir_http_call *call);

/* The session that a request belongs to and that was begun with this token. False: there is none,
 * or `token` is NULL. */
bool weir_session_find(const struct weir_http_call *call, const char *token,
                       unsigned char id[WEIR_SESSION_ID_BYTES]);

#endif
