/* SPDX-License-Identifier: Apache-2.0 */
/* see dashboard_page.h */
#include "feature/dashboard/server/dashboard_page.h"

#include <string.h>

#include "feature/envoy/server/daemon.h"
#include "feature/envoy/server/http.h"
#include "server/admin/access.h"
#include "server/daemon/daemon.h"
#include "server/http/reply.h"
#include "server/http/request.h"

/* Scripts and styles are files of this listener; the page writes no HTML, and talks to this
 * listener only. */
#define POLICY                                                                                     \
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; "           \
    "connect-src 'self'; img-src data:; require-trusted-types-for 'script'; "                      \
    "trusted-types 'none'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'\r\n"

static void reply(struct weir_http_call *call, struct weir_bytes name)
{
    weir_page_files_reply(call, &weir_dashboard_page_files, name, WEIR_PAGE_FIELDS POLICY);
}

static bool wants_html(const struct weir_http_call *call)
{
    struct weir_bytes accept = weir_http1_field(call->request, "accept");
    return accept.data && memmem(accept.data, accept.size, "text/html", 9);
}

static void root_handle(struct weir_http_call *call)
{
    static const char index[] = "index.html";
    static const struct weir_http_route closed = {.name = "root"};
    const struct weir_daemon *daemon = call->http->server;
    if (!weir_daemon_envoy(daemon) || wants_html(call))
        reply(call, (struct weir_bytes){index, sizeof index - 1});
    else if (weir_admin_admit(call, &closed))
        weir_envoy_root_handle(call);
}

static void file_handle(struct weir_http_call *call)
{
    struct weir_bytes name = call->tail;
    if (name.size > 1)
        reply(call, (struct weir_bytes){name.data + 1, name.size - 1});
    else
        weir_http_reply(call, WEIR_HTTP_303, "Location: /\r\n", NULL, "", 0);
}

const struct weir_http_route weir_dashboard_page_routes[] = {
    {"/dashboard", "dashboard", "GET, HEAD", NULL, file_handle,
     WEIR_ROUTE_PREFIX | WEIR_ROUTE_PUBLIC},
    {"/", "root", "GET, HEAD", "the dashboard", root_handle, WEIR_ROUTE_PUBLIC},
    {.path = NULL},
};
