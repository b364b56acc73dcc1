/* SPDX-License-Identifier: Apache-2.0 */
/* see metrics.h */
#include "feature/dashboard/server/metrics.h"

#include <inttypes.h>

#include "feature/dashboard/server/daemon.h"
#include "feature/dashboard/server/dashboard.h"
#include "server/admin/exposition.h"
#include "server/daemon/clock.h"

void weir_metrics_of_dashboard(struct weir_metrics *metrics)
{
    static const char events[] = "weir_dashboard_events_total";
    static const char seconds[] = "weir_dashboard_snapshot_seconds_total";
    const struct weir_dashboard *dashboard = weir_daemon_dashboard(metrics->daemon);
    if (!dashboard) /* a test's daemon has none */
        return;
    weir_metrics_number(metrics, "weir_dashboard_clients", "gauge",
                        "Browsers that listen to the live stream of the dashboard.",
                        dashboard->stream.count);
    weir_metrics_number(metrics, "weir_dashboard_clients_refused_total", "counter",
                        "Browsers refused because too many listened.", dashboard->stream.refused);
    weir_metrics_head(metrics, events, "counter",
                      "Snapshots for one browser each: sent, or lost because it reads too slowly.");
    weir_metrics_put(metrics, "%s{result=\"sent\"} %" PRIu64 "\n", events, dashboard->stream.ticks);
    weir_metrics_put(metrics, "%s{result=\"lost\"} %" PRIu64 "\n", events, dashboard->stream.lost);
    weir_metrics_number(metrics, "weir_dashboard_event_bytes_total", "counter",
                        "Bytes of snapshots that were sent, after compression.",
                        dashboard->stream.bytes);
    weir_metrics_head(metrics, seconds, "counter", "Time that making and sending them took.");
    weir_metrics_put(metrics, "%s %.6f\n", seconds, (double)dashboard->snapshot_ns / 1e9);
    weir_metrics_number(metrics, "weir_dashboard_sessions", "gauge",
                        "Sessions of people who have logged in.",
                        weir_sessions_count(&dashboard->sessions, weir_clock_boot_ns()));
}
