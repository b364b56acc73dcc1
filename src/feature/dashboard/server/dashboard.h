/* SPDX-License-Identifier: Apache-2.0 */
/* What the dashboard has in the server (docs/dashboard.md): sessions, and the stream that keeps the
 * page live. Its page is in dashboard/; it asks the admin API for all else.
 *
 * Each second that has a point in the series, one snapshot is made and sent to all clients; without
 * clients there is none. A reload of the rules ends all streams: browsers connect again at once,
 * and whether they may is asked anew.
 *
 * Threads: the main thread's. Workers only show counters that they have anyway.
 */
#ifndef WEIR_FEATURE_DASHBOARD_SERVER_DASHBOARD_H
#define WEIR_FEATURE_DASHBOARD_SERVER_DASHBOARD_H

#include <uv.h>

#include "feature/dashboard/server/sessions.h"
#include "feature/dashboard/server/stream.h"

struct weir_daemon;
struct weir_metrics;
struct weir_reason;

struct weir_dashboard {
    struct weir_daemon *daemon;
    struct weir_sessions sessions;
    struct weir_stream stream;
    uv_timer_t timer;
    uint64_t second;      /* of the last snapshot */
    uint64_t denial_last; /* the newest denial that it had */
    uint64_t reloads;     /* at the last look */
    uint64_t snapshot_ns;
    uint8_t reloader_size; /* who has asked for the last reload over this listener; 0: nobody has */
    char reloader[WEIR_SESSION_NAME_MAX];
};

/* Opens it; start: on the loop of the admin worker, which closes the timer. Errors:
 * WEIR_ERR_MEMORY, WEIR_ERR_IO (no randomness), which `reason` explains. */
int weir_dashboard_open(struct weir_dashboard **dashboard, struct weir_daemon *daemon,
                        struct weir_reason *reason) __attribute__((warn_unused_result));
void weir_dashboard_start(struct weir_dashboard *dashboard, uv_loop_t *loop);

/* Ends all streams and takes no more: the server stops. */
void weir_dashboard_stop(struct weir_dashboard *dashboard);

/* After the admin worker. NULL is allowed. */
void weir_dashboard_close(struct weir_dashboard *dashboard);

#endif
