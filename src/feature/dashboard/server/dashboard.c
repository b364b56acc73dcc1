/* SPDX-License-Identifier: Apache-2.0 */
/* see dashboard.h */
#include "feature/dashboard/server/dashboard.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "feature/dashboard/server/snapshot.h"
#include "feature/use/server/daemon.h"
#include "feature/use/server/use.h"
#include "server/daemon/clock.h"
#include "server/daemon/daemon.h"

/* How often it looks whether the series has a new second. */
#define LOOK_MS 250

int weir_dashboard_open(struct weir_dashboard **out, struct weir_daemon *daemon,
                        struct weir_reason *reason)
{
    struct weir_dashboard *dashboard = calloc(1, sizeof *dashboard);
    uint64_t secret[2];
    int err = dashboard ? 0 : WEIR_ERR_MEMORY;
    if (err == 0 && getrandom(secret, sizeof secret, 0) != (ssize_t)sizeof secret)
        err = WEIR_ERR_IO;
    if (err < 0) {
        snprintf(reason->text, sizeof reason->text, "dashboard: %s",
                 err == WEIR_ERR_IO ? "the system gives no random numbers" : weir_error_text(err));
        free(dashboard);
        return err;
    }
    dashboard->daemon = daemon;
    weir_sessions_init(&dashboard->sessions, secret);
    *out = dashboard;
    return 0;
}

static bool session_is_good(void *context, const unsigned char *session)
{
    const struct weir_dashboard *dashboard = context;
    const char *token = weir_rules_settings(dashboard->daemon->rules)->admin.token;
    return token && weir_sessions_has(&dashboard->sessions, session, token, weir_clock_boot_ns());
}

/* One text for all clients that have asked for the same. */
static void send_parts(struct weir_stream *stream, const json_t *snapshot)
{
    bool sent[WEIR_SNAPSHOT_ALL + 1] = {false};
    for (unsigned i = 0; i < WEIR_STREAM_CLIENTS_MAX; i++) {
        unsigned parts = stream->clients[i].parts;
        if (!stream->clients[i].slot || sent[parts])
            continue;
        sent[parts] = true;
        char *text = weir_snapshot_text(snapshot, parts);
        if (text)
            weir_stream_send(stream, parts, text, strlen(text));
        free(text);
    }
}

/* Makes a snapshot and sends it, if anybody listens. */
static void tick(struct weir_dashboard *dashboard)
{
    struct weir_stream *stream = &dashboard->stream;
    const struct weir_daemon *daemon = dashboard->daemon;
    if (dashboard->reloads != daemon->loads.count)
        weir_stream_end(stream);
    dashboard->reloads = daemon->loads.count;
    weir_stream_check(stream, session_is_good, dashboard);
    if (stream->count == 0)
        return;
    uint64_t began_ns = weir_clock_boot_ns();
    json_t *snapshot = weir_snapshot_make(dashboard, weir_stream_parts(stream));
    if (snapshot)
        send_parts(stream, snapshot);
    json_decref(snapshot);
    dashboard->snapshot_ns += weir_clock_boot_ns() - began_ns;
}

static void on_timer(uv_timer_t *timer)
{
    struct weir_dashboard *dashboard = timer->data;
    uint64_t second = weir_series_last(weir_daemon_use(dashboard->daemon)->whole);
    if (second == dashboard->second)
        return;
    dashboard->second = second;
    tick(dashboard);
}

void weir_dashboard_start(struct weir_dashboard *dashboard, uv_loop_t *loop)
{
    dashboard->reloads = dashboard->daemon->loads.count;
    uv_timer_init(loop, &dashboard->timer);
    dashboard->timer.data = dashboard;
    uv_timer_start(&dashboard->timer, on_timer, LOOK_MS, LOOK_MS);
}

void weir_dashboard_stop(struct weir_dashboard *dashboard)
{
    dashboard->stream.stopping = true;
    weir_stream_end(&dashboard->stream);
}

void weir_dashboard_close(struct weir_dashboard *dashboard)
{
    free(dashboard);
}
