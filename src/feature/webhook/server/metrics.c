/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of the webhook; see admin/metrics.h */
#include "feature/webhook/server/metrics.h"

#include <inttypes.h>

#include "feature/webhook/server/daemon.h"

void weir_metrics_of_webhook(struct weir_metrics *metrics)
{
    if (!weir_rules_settings(metrics->daemon->rules)->webhook.url)
        return;
    const struct weir_webhook_stats *stats =
        weir_webhook_stats(weir_daemon_webhook(metrics->daemon));
    const struct {
        const char *result;
        const _Atomic uint64_t *value;
    } results[] = {
        {"delivered", &stats->delivered}, {"failed", &stats->failed}, {"dropped", &stats->dropped}};
    weir_metrics_head(metrics, "weir_webhook_events_total", "counter",
                      "Warnings and moves of penalties by what became of them.");
    for (size_t i = 0; i < sizeof results / sizeof *results; i++)
        weir_metrics_put(metrics, "weir_webhook_events_total{result=\"%s\"} %" PRIu64 "\n",
                         results[i].result, weir_counted(results[i].value));
    weir_metrics_number(metrics, "weir_webhook_attempts_total", "counter",
                        "Requests sent to the webhook.", weir_counted(&stats->attempts));
    weir_metrics_number(metrics, "weir_webhook_queued", "gauge", "Events that wait to be sent.",
                        weir_counted(&stats->queued));
}
