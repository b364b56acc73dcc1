/* SPDX-License-Identifier: Apache-2.0 */
/* see metrics.h */
#include "feature/identity/server/metrics.h"

#include <inttypes.h>

#include "feature/identity/server/daemon.h"
#include "server/stores/metrics.h"

void weir_metrics_of_identities(struct weir_metrics *metrics)
{
    struct weir_directories_totals totals;
    if (!weir_daemon_directories(metrics->daemon))
        return;
    weir_directories_totals(weir_daemon_directories(metrics->daemon), &totals);
    const struct weir_directory_counters *counters = &totals.counters;
    const struct {
        const char *result;
        const _Atomic uint64_t *value;
    } results[] = {
        {"hit", &counters->hit},     {"negative_hit", &counters->negative_hit},
        {"found", &counters->found}, {"unknown", &counters->unknown},
        {"stale", &counters->stale}, {"on_error", &counters->guessed},
        {"error", &counters->error}, {"late", &counters->late},
    };
    weir_metrics_number(
        metrics, "weir_identities_up", "gauge",
        "1: every worker reaches the Redis that callers are kept in, and is answered.",
        totals.workers > 0 && totals.up == totals.workers);
    weir_metrics_head(metrics, "weir_identity_lookups_total", "counter",
                      "How it was found out who is calling: from memory, by asking, or not.");
    for (size_t i = 0; i < sizeof results / sizeof *results; i++)
        weir_metrics_put(metrics, "weir_identity_lookups_total{result=\"%s\"} %" PRIu64 "\n",
                         results[i].result, weir_counted(results[i].value));
    weir_metrics_head(metrics, "weir_identities", "gauge", "API keys cached, summed over workers.");
    weir_metrics_put(metrics, "weir_identities{kind=\"known\"} %" PRIu64 "\n",
                     weir_counted(&counters->known));
    weir_metrics_put(metrics, "weir_identities{kind=\"nobody\"} %" PRIu64 "\n",
                     weir_counted(&counters->nobody));
    weir_metrics_number(metrics, "weir_identity_overrides", "gauge",
                        "Different overrides that callers in Redis have had.", totals.overrides);
    weir_metrics_latency(metrics, "weir_identity_lookup_seconds",
                         "Time from asking who a key belongs to, to the answer.",
                         counters->latency_buckets, weir_counted(&counters->latency_ns));
}
