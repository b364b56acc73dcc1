/* SPDX-License-Identifier: Apache-2.0 */
/* The cookie of a session of the dashboard (sessions.h), as requests carry it.
 *
 * Its name ends with the port that the browser asked for, because cookies do not keep ports of one
 * host apart (RFC 6265 8.5), and operators forward several nodes to ports of their own machine.
 *
 * Threads: the admin worker's.
 */
#ifndef WEIR_FEATURE_DASHBOARD_SERVER_SESSION_COOKIE_H
#define WEIR_FEATURE_DASHBOARD_SERVER_SESSION_COOKIE_H

#include "feature/dashboard/server/sessions.h"
#include "server/http/http.h"

#define WEIR_SESSION_COOKIE_MAX sizeof "weir_session_65535"

/* "weir_session_9090", with the port of the Host; without one "weir_session". */
void weir_session_cookie_name(const struct weir_http_call *call,
                              char name[WEIR_SESSION_COOKIE_MAX]);

/* The next id of a cookie of this listener's name, which it takes off *field. A browser may send
 * several of one name: another server of this host can set one for a longer path, which then comes
 * first. */
bool weir_session_cookie_next(struct weir_bytes *field, const char *name,
                              unsigned char id[WEIR_SESSION_ID_BYTES]);

/* The session that a request belongs to and that was begun with this token. False: there is none,
 * or `token` is NULL. */
bool weir_session_find(const struct weir_http_call *call, const char *token,
                       unsigned char id[WEIR_SESSION_ID_BYTES]);

/* The name that the session of a request has; empty: it has none, or there is no session. */
struct weir_bytes weir_session_name(const struct weir_http_call *call, const char *token);

#endif
