/* SPDX-License-Identifier: Apache-2.0 */
/* see metrics.h */
#include "feature/sticky/server/metrics.h"

#include <inttypes.h>
#include <stddef.h>

#include "feature/sticky/server/daemon.h"
#include "feature/sticky/server/sticky_peers.h"

static const struct {
    const char *name, *type, *help;
    size_t offset;
} lines[] = {
    {"weir_peer_up", "gauge", "1: every worker reaches the node and its breaker is closed.",
     offsetof(struct sticky_peer_stats, up)},
    {"weir_peer_calls_total", "counter", "Decisions sent to the node.",
     offsetof(struct sticky_peer_stats, calls)},
    {"weir_peer_errors_total", "counter",
     "Decisions that the node refused in words, answered with nonsense, or lost with a connection.",
     offsetof(struct sticky_peer_stats, errors)},
    {"weir_peer_timeouts_total", "counter", "Decisions that the node has not answered in time.",
     offsetof(struct sticky_peer_stats, timeouts)},
    {"weir_peer_unsent_total", "counter",
     "Decisions not sent, as the node is not connected or its breaker is open.",
     offsetof(struct sticky_peer_stats, refused)},
};

void weir_metrics_of_sticky(struct weir_metrics *metrics)
{
    struct weir_sticky_peers *peers = weir_daemon_sticky(metrics->daemon);
    struct weir_sticky_total totals[STICKY_PEERS_MAX];
    if (!peers)
        return;
    uint32_t count = weir_sticky_peers_totals(peers, totals);
    for (size_t line = 0; line < sizeof lines / sizeof *lines; line++) {
        weir_metrics_head(metrics, lines[line].name, lines[line].type, lines[line].help);
        for (uint32_t i = 0; i < count; i++) {
            const char *bytes = (const char *)&totals[i].stats;
            const void *value = bytes + lines[line].offset;
            weir_metrics_put(metrics, "%s{peer=\"%s\"} %" PRIu64 "\n", lines[line].name,
                             totals[i].name, weir_counted((const _Atomic uint64_t *)value));
        }
    }
    weir_metrics_head(metrics, "weir_peer_latency_seconds", "summary",
                      "Time from sending a decision to the node to its answer.");
    for (uint32_t i = 0; i < count; i++) {
        weir_metrics_put(metrics, "weir_peer_latency_seconds_sum{peer=\"%s\"} %.9f\n",
                         totals[i].name, (double)weir_counted(&totals[i].stats.answered_ns) / 1e9);
        weir_metrics_put(metrics, "weir_peer_latency_seconds_count{peer=\"%s\"} %" PRIu64 "\n",
                         totals[i].name, weir_counted(&totals[i].stats.answered));
    }
}
