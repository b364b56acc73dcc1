/* SPDX-License-Identifier: Apache-2.0 */
/* see metrics.h */
#include "feature/envoy/server/xds/metrics.h"

#include <stddef.h>

#include "feature/envoy/server/daemon.h"
#include "feature/envoy/server/xds/stream.h"
#include "server/daemon/daemon.h"

#define AT(member) .at = offsetof(struct weir_xds_numbers, member)

bool weir_xds_numbers_read(struct weir_daemon *daemon, void *read)
{
    const struct weir_envoy_shared *shared = weir_daemon_envoy(daemon);
    struct weir_xds_numbers *numbers = read;
    if (!shared || !shared->xds)
        return false;
    weir_xds_stream_counts(shared->xds, &numbers->counts);
    numbers->connected = numbers->counts.connected;
    return true;
}

static void put_answers(struct weir_metrics *metrics, const struct weir_metric *metric,
                        const void *read)
{
    const struct weir_xds_counts *counts = &((const struct weir_xds_numbers *)read)->counts;
    weir_metrics_value(metrics, metric, counts->accepted, "accepted");
    weir_metrics_value(metrics, metric, counts->refused, "refused");
}

const struct weir_metric weir_xds_rows[] = {
    {"weir_envoy_xds_connected", "gauge", NULL, "Whether the stream to the control plane is open.",
     AT(connected)},
    {"weir_envoy_xds_streams_total", "counter", NULL, "Streams to the control plane.",
     AT(counts.streams)},
    {"weir_envoy_xds_responses_total", "counter", NULL, "Responses of the control plane.",
     AT(counts.responses)},
    {"weir_envoy_xds_answers_total", "counter", "result",
     "What became of these responses: in force, or refused.", .put = put_answers},
    {.name = NULL},
};
