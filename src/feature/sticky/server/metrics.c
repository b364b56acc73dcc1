/* SPDX-License-Identifier: Apache-2.0 */
/* see metrics.h */
#include "feature/sticky/server/metrics.h"

#include <inttypes.h>
#include <stddef.h>

#include "feature/sticky/server/daemon.h"
#include "feature/sticky/server/sticky_peers.h"

struct numbers {
    struct weir_sticky_total totals[STICKY_PEERS_MAX];
    uint32_t count;
};
#define AT(member) .at = offsetof(struct sticky_peer_stats, member)
_Static_assert(sizeof(struct numbers) <= WEIR_METRIC_NUMBERS_MAX, "grow it");

static bool read_numbers(struct weir_daemon *daemon, void *read)
{
    struct numbers *numbers = read;
    if (!weir_daemon_sticky(daemon))
        return false;
    numbers->count = weir_sticky_peers_totals(weir_daemon_sticky(daemon), numbers->totals);
    return true;
}

/* `at`: in the stats of a peer. */
static void put_peers(struct weir_metrics *metrics, const struct weir_metric *metric,
                      const void *numbers)
{
    const struct numbers *peers = numbers;
    for (uint32_t i = 0; i < peers->count; i++) {
        const void *value = (const char *)&peers->totals[i].stats + metric->at;
        weir_metrics_value(metrics, metric, weir_counted((const _Atomic uint64_t *)value),
                           peers->totals[i].name);
    }
}

static void put_latency(struct weir_metrics *metrics, const struct weir_metric *metric,
                        const void *numbers)
{
    const struct numbers *peers = numbers;
    for (uint32_t i = 0; i < peers->count; i++) {
        const struct weir_sticky_total *peer = &peers->totals[i];
        weir_metrics_series(metrics, metric, "_sum", peer->name);
        weir_metrics_put(metrics, "%.9f\n", (double)weir_counted(&peer->stats.answered_ns) / 1e9);
        weir_metrics_series(metrics, metric, "_count", peer->name);
        weir_metrics_put(metrics, "%" PRIu64 "\n", weir_counted(&peer->stats.answered));
    }
}

static const struct weir_metric rows[] = {
    {"weir_peer_up", "gauge", "peer", "1: every worker reaches the node and its breaker is closed.",
     AT(up), .put = put_peers},
    {"weir_peer_calls_total", "counter", "peer", "Decisions sent to the node.", AT(calls),
     .put = put_peers},
    {"weir_peer_errors_total", "counter", "peer",
     "Decisions that the node refused in words, answered with nonsense, or lost with a connection.",
     AT(errors), .put = put_peers},
    {"weir_peer_timeouts_total", "counter", "peer",
     "Decisions that the node has not answered in time.", AT(timeouts), .put = put_peers},
    {"weir_peer_unsent_total", "counter", "peer",
     "Decisions not sent, as the node is not connected or its breaker is open.", AT(refused),
     .put = put_peers},
    {"weir_peer_latency_seconds", "summary", "peer",
     "Time from sending a decision to the node to its answer.", .put = put_latency},
    {.name = NULL},
};
const struct weir_metric_table weir_sticky_metrics[] = {
    {rows, read_numbers, sizeof(struct numbers)},
    {.rows = NULL},
};
