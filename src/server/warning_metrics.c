/* Metrics of warnings and of the webhook; see metrics.h */
#include <inttypes.h>

#include "server/metrics.h"

static void put_warnings(struct weir_metrics *metrics)
{
    struct weir_daemon *daemon = metrics->daemon;
    if (!weir_rules_warns(daemon->rules))
        return;
    weir_metrics_head(metrics, "weir_warnings_total", "counter",
                      "Times that a key has reached a threshold, once a period.");
    for (uint32_t rule = 0; rule < weir_rules_count(daemon->rules); rule++) {
        const struct weir_warn_at *at = weir_rules_warn_at(daemon->rules, rule);
        struct weir_rule_info info;
        struct weir_limit_totals totals;
        if (at->count == 0)
            continue;
        weir_rules_info(daemon->rules, rule, &info);
        weir_daemon_totals(daemon, info.name, &totals);
        for (int t = 0; t < at->count; t++)
            weir_metrics_put(metrics,
                             "weir_warnings_total{limit=\"%s\",threshold=\"%u\"} %" PRIu64 "\n",
                             info.name, (unsigned)at->percent[t], totals.warnings[t]);
    }
}

static void put_number(struct weir_metrics *metrics, const char *name, const char *type,
                       const char *help, const _Atomic uint64_t *value)
{
    weir_metrics_head(metrics, name, type, help);
    weir_metrics_put(metrics, "%s %" PRIu64 "\n", name, weir_counted(value));
}

static void put_webhook(struct weir_metrics *metrics)
{
    const struct weir_webhook_stats *stats = weir_webhook_stats(metrics->daemon->webhook);
    const struct {
        const char *result;
        const _Atomic uint64_t *value;
    } results[] = {
        {"delivered", &stats->delivered}, {"failed", &stats->failed}, {"dropped", &stats->dropped}};
    weir_metrics_head(metrics, "weir_webhook_events_total", "counter",
                      "Warnings by what became of them.");
    for (size_t i = 0; i < sizeof results / sizeof *results; i++)
        weir_metrics_put(metrics, "weir_webhook_events_total{result=\"%s\"} %" PRIu64 "\n",
                         results[i].result, weir_counted(results[i].value));
    put_number(metrics, "weir_webhook_attempts_total", "counter", "Requests sent to the webhook.",
               &stats->attempts);
    put_number(metrics, "weir_webhook_queued", "gauge", "Warnings that wait to be sent.",
               &stats->queued);
}

void weir_metrics_of_warnings(struct weir_metrics *metrics)
{
    put_warnings(metrics);
    if (weir_rules_settings(metrics->daemon->rules)->webhook.url)
        put_webhook(metrics);
}
