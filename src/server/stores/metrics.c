/* SPDX-License-Identifier: Apache-2.0 */
/* see metrics.h */
#include "server/stores/metrics.h"

#include <inttypes.h>

#include "feature/region/rules/region.h"
#include "feature/region/server/metrics.h"
#include "server/stores/daemon.h"

void weir_metrics_latency(struct weir_metrics *metrics, const char *name, const char *help,
                          const _Atomic uint64_t *buckets, uint64_t ns)
{
    uint64_t calls = 0;
    weir_metrics_head(metrics, name, "histogram", help);
    for (size_t i = 0; i <= REDIS_LATENCY_BUCKETS; i++) {
        calls += weir_counted(&buckets[i]);
        if (i < REDIS_LATENCY_BUCKETS)
            weir_metrics_put(metrics, "%s_bucket{le=\"%g\"} %" PRIu64 "\n", name,
                             (double)redis_latency_bounds_us[i] / 1e6, calls);
    }
    weir_metrics_put(metrics, "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n", name, calls);
    weir_metrics_put(metrics, "%s_sum %.9f\n", name, (double)ns / 1e9);
    weir_metrics_put(metrics, "%s_count %" PRIu64 "\n", name, calls);
}

void weir_metrics_of_store(struct weir_metrics *metrics)
{
    struct weir_shared_totals totals;
    if (!weir_daemon_shared(metrics->daemon))
        return;
    weir_shared_store_totals(weir_daemon_shared(metrics->daemon), &totals);
    const struct weir_store_redis_stats *stats = &totals.stats;
    const struct weir_bytes region = weir_rules_region_self(metrics->daemon->rules);
    if (region.size) {
        weir_metrics_head(
            metrics, "weir_region_up", "gauge",
            "1: every worker reaches the Redis of the region and its breaker is closed.");
        weir_metrics_put(metrics, "weir_region_up{region=\"%.*s\"} %d\n", (int)region.size,
                         region.data, totals.workers > 0 && totals.up == totals.workers);
        weir_region_metrics(metrics);
    }
    const struct {
        const char *name, *type, *help;
        uint64_t value;
    } lines[] = {
        {"weir_store_up", "gauge", "1: every worker reaches the store and its breaker is closed.",
         totals.workers > 0 && totals.up == totals.workers},
        {"weir_store_breaker", "gauge",
         "Circuit breaker of the worker that is worst off: 0 closed, 1 open, 2 half open.",
         totals.open        ? REDIS_BREAKER_OPEN
         : totals.half_open ? REDIS_BREAKER_HALF_OPEN
                            : REDIS_BREAKER_CLOSED},
        {"weir_store_breaker_opened_total", "counter", "Times that a worker's breaker has opened.",
         weir_counted(&stats->breaker_opened)},
        {"weir_store_calls_total", "counter", "Calls sent.", weir_counted(&stats->calls)},
        {"weir_store_call_errors_total", "counter", "Calls that failed, or were refused in words.",
         weir_counted(&stats->errors)},
        {"weir_store_timeouts_total", "counter", "Calls without an answer in time.",
         weir_counted(&stats->timeouts)},
        {"weir_store_unknown_total", "counter", "Calls that may or may not have been executed.",
         weir_counted(&stats->unknown)},
        {"weir_store_redirects_total", "counter", "Times that a call was sent to another server.",
         weir_counted(&stats->redirects)},
        {"weir_store_rollbacks_total", "counter", "Reservations given back.",
         weir_counted(&stats->rollbacks)},
        {"weir_store_remembered_total", "counter", "Denials answered from memory.",
         weir_counted(&stats->remembered)},
        {"weir_store_leases", "gauge", "Shares of budgets that are held.",
         weir_counted(&stats->shares)},
        {"weir_store_lease_refills_total", "counter", "Shares taken.",
         weir_counted(&stats->share_refills)},
        {"weir_store_lease_returns_total", "counter", "Shares given back.",
         weir_counted(&stats->share_returns)},
        {"weir_store_lease_decisions_total", "counter", "Decisions made from shares.",
         weir_counted(&stats->share_decisions)},
        {"weir_store_lease_forfeited_total", "counter",
         "Units of shares that were charged, but neither used nor given back in time.",
         weir_counted(&stats->share_forfeited)},
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        weir_metrics_number(metrics, lines[i].name, lines[i].type, lines[i].help, lines[i].value);
    weir_metrics_latency(metrics, "weir_store_latency_seconds",
                         "Time from a call's writing to its reply.", stats->latency_buckets,
                         weir_counted(&stats->latency_ns));
}
