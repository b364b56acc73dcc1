/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of the webhook; see admin/metrics.h */
#include "feature/webhook/server/metrics.h"

#include <inttypes.h>
#include <stddef.h>

#include "feature/webhook/server/daemon.h"

struct numbers {
    uint64_t delivered, failed, dropped, attempts, queued;
};
#define AT(member) .at = offsetof(struct numbers, member)

static bool read_numbers(struct weir_daemon *daemon, void *numbers)
{
    if (!weir_rules_settings(daemon->rules)->webhook.url || !weir_daemon_webhook(daemon))
        return false;
    const struct weir_webhook_stats *stats = weir_webhook_stats(weir_daemon_webhook(daemon));
    *(struct numbers *)numbers = (struct numbers){
        weir_counted(&stats->delivered), weir_counted(&stats->failed),
        weir_counted(&stats->dropped),   weir_counted(&stats->attempts),
        weir_counted(&stats->queued),
    };
    return true;
}

static void put_events(struct weir_metrics *metrics, const struct weir_metric *metric,
                       const void *numbers)
{
    const struct numbers *webhook = numbers;
    weir_metrics_value(metrics, metric, webhook->delivered, "delivered");
    weir_metrics_value(metrics, metric, webhook->failed, "failed");
    weir_metrics_value(metrics, metric, webhook->dropped, "dropped");
}

static const struct weir_metric rows[] = {
    {"weir_webhook_events_total", "counter", "result",
     "Warnings and moves of penalties by what became of them.", .put = put_events},
    {"weir_webhook_attempts_total", "counter", NULL, "Requests sent to the webhook.", AT(attempts)},
    {"weir_webhook_queued", "gauge", NULL, "Events that wait to be sent.", AT(queued)},
    {.name = NULL},
};
const struct weir_metric_table weir_webhook_metrics[] = {
    {rows, read_numbers, sizeof(struct numbers)},
    {.rows = NULL},
};
