/* SPDX-License-Identifier: Apache-2.0 */
/* see session_cookie.h */
#include "feature/dashboard/server/session_cookie.h"

#include <stdio.h>

#include "core/bytes.h"
#include "core/text/hex.h"
#include "feature/challenge/cookie.h"
#include "feature/dashboard/server/daemon.h"
#include "feature/dashboard/server/dashboard.h"
#include "server/daemon/clock.h"
#include "server/daemon/daemon.h"

#define COOKIE_NAME "weir_session"
#define ID_DIGITS (2 * (size_t)WEIR_SESSION_ID_BYTES)

static struct weir_dashboard *dashboard_of(const struct weir_http_call *call)
{
    const struct weir_daemon *daemon = call->http->server;
    return weir_daemon_dashboard(daemon);
}

void weir_session_cookie_name(const struct weir_http_call *call, char name[WEIR_SESSION_COOKIE_MAX])
{
    struct weir_bytes host = call->request->host;
    size_t digits = 0;
    while (digits < host.size && host.data[host.size - 1 - digits] >= '0' &&
           host.data[host.size - 1 - digits] <= '9')
        digits++;
    bool port =
        digits > 0 && digits <= 5 && digits < host.size && host.data[host.size - 1 - digits] == ':';
    snprintf(name, WEIR_SESSION_COOKIE_MAX, "%s%s%.*s", COOKIE_NAME, port ? "_" : "",
             port ? (int)digits : 0, host.data ? host.data + host.size - digits : "");
}

static bool id_read(struct weir_bytes text, unsigned char id[WEIR_SESSION_ID_BYTES])
{
    if (text.size != ID_DIGITS)
        return false;
    for (size_t i = 0; i < WEIR_SESSION_ID_BYTES; i++) {
        int high = weir_hex_value(text.data[2 * i]), low = weir_hex_value(text.data[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        id[i] = (unsigned char)(high << 4 | low);
    }
    return true;
}

bool weir_session_cookie_next(struct weir_bytes *field, const char *name,
                              unsigned char id[WEIR_SESSION_ID_BYTES])
{
    struct weir_bytes value;
    while (weir_cookie_next(field, weir_bytes_of(name), &value))
        if (id_read(value, id))
            return true;
    return false;
}

bool weir_session_find(const struct weir_http_call *call, const char *token,
                       unsigned char id[WEIR_SESSION_ID_BYTES])
{
    const struct weir_dashboard *dashboard = dashboard_of(call);
    struct weir_bytes field = weir_http1_field(call->request, "cookie");
    uint64_t now_ns = weir_clock_boot_ns();
    char name[WEIR_SESSION_COOKIE_MAX];
    weir_session_cookie_name(call, name);
    while (dashboard && token && weir_session_cookie_next(&field, name, id))
        if (weir_sessions_has(&dashboard->sessions, id, token, now_ns))
            return true;
    return false;
}

struct weir_bytes weir_session_name(const struct weir_http_call *call, const char *token)
{
    unsigned char id[WEIR_SESSION_ID_BYTES];
    if (!weir_session_find(call, token, id))
        return (struct weir_bytes){NULL, 0};
    return weir_sessions_name(&dashboard_of(call)->sessions, id);
}
