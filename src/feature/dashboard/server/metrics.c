/* SPDX-License-Identifier: Apache-2.0 */
/* see metrics.h */
#include "feature/dashboard/server/metrics.h"

#include <inttypes.h>
#include <stddef.h>

#include "feature/dashboard/server/daemon.h"
#include "feature/dashboard/server/dashboard.h"
#include "server/admin/exposition.h"
#include "server/daemon/clock.h"

struct numbers {
    const struct weir_dashboard *dashboard;
    uint64_t clients, refused, bytes, sessions;
};
#define AT(member) .at = offsetof(struct numbers, member)

static bool read_numbers(struct weir_daemon *daemon, void *read)
{
    const struct weir_dashboard *dashboard = weir_daemon_dashboard(daemon);
    struct numbers *numbers = read;
    if (!dashboard) /* a test's daemon has none */
        return false;
    *numbers = (struct numbers){dashboard, dashboard->stream.count, dashboard->stream.refused,
                                dashboard->stream.bytes,
                                weir_sessions_count(&dashboard->sessions, weir_clock_boot_ns())};
    return true;
}

static void put_events(struct weir_metrics *metrics, const struct weir_metric *metric,
                       const void *numbers)
{
    const struct weir_dashboard *dashboard = ((const struct numbers *)numbers)->dashboard;
    weir_metrics_value(metrics, metric, dashboard->stream.ticks, "sent");
    weir_metrics_value(metrics, metric, dashboard->stream.lost, "lost");
}

static void put_time(struct weir_metrics *metrics, const struct weir_metric *metric,
                     const void *numbers)
{
    const struct weir_dashboard *dashboard = ((const struct numbers *)numbers)->dashboard;
    weir_metrics_put(metrics, "%s %.6f\n", metric->name, (double)dashboard->snapshot_ns / 1e9);
}

static const struct weir_metric rows[] = {
    {"weir_dashboard_clients", "gauge", NULL,
     "Browsers that listen to the live stream of the dashboard.", AT(clients)},
    {"weir_dashboard_clients_refused_total", "counter", NULL,
     "Browsers refused because too many listened.", AT(refused)},
    {"weir_dashboard_events_total", "counter", "result",
     "Snapshots for one browser each: sent, or lost because it reads too slowly.",
     .put = put_events},
    {"weir_dashboard_event_bytes_total", "counter", NULL,
     "Bytes of snapshots that were sent, after compression.", AT(bytes)},
    {"weir_dashboard_snapshot_seconds_total", "counter", NULL,
     "Time that making and sending them took.", .put = put_time},
    {"weir_dashboard_sessions", "gauge", NULL, "Sessions of people who have logged in.",
     AT(sessions)},
    {.name = NULL},
};
const struct weir_metric_table weir_dashboard_metrics[] = {
    {rows, read_numbers, sizeof(struct numbers)},
    {.rows = NULL},
};
