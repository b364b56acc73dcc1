/* SPDX-License-Identifier: Apache-2.0 */
/* Who may use a route of the admin listener. */
#ifndef WEIR_SERVER_ADMIN_ACCESS_H
#define WEIR_SERVER_ADMIN_ACCESS_H

#include "server/http/http.h"

/* Whether the caller may use the route, and whether the caller may change something on it. Answers
 * the request where not. */
bool weir_admin_admit(struct weir_http_call *call, const struct weir_http_route *route);
bool weir_admin_may_change(struct weir_http_call *call);

/* Whether the caller may change something, without an answer. False: `why` says it to the caller.
 */
bool weir_admin_can_change(struct weir_http_call *call, const char **why);

/* Who makes a change: the name that the session of a browser has, else `given`, as the request
 * says. */
struct weir_bytes weir_admin_who(const struct weir_http_call *call, struct weir_bytes given);

/* Whether no page of another site sends the request, as far as its Host, Origin and Sec-Fetch-Site
 * say. Answers the request where one does. For public routes; admit asks it of the others. */
bool weir_admin_is_own_page(struct weir_http_call *call);

/* Whether the caller of a public route may read what others may not. A wrong token is counted as a
 * guess. Answers nothing. */
bool weir_admin_may_read(struct weir_http_call *call);

#endif
