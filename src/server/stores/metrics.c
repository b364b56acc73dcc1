/* SPDX-License-Identifier: Apache-2.0 */
/* see metrics.h */
#include "server/stores/metrics.h"

#include <inttypes.h>
#include <stddef.h>

#include "feature/region/rules/region.h"
#include "feature/region/server/metrics.h"
#include "server/stores/daemon.h"
#include "server/stores/shared_store.h"

void weir_metrics_latency(struct weir_metrics *metrics, const struct weir_metric *metric,
                          const _Atomic uint64_t *buckets, uint64_t ns)
{
    uint64_t calls = 0;
    for (size_t i = 0; i <= REDIS_LATENCY_BUCKETS; i++) {
        calls += weir_counted(&buckets[i]);
        if (i < REDIS_LATENCY_BUCKETS)
            weir_metrics_put(metrics, "%s_bucket{le=\"%g\"} %" PRIu64 "\n", metric->name,
                             (double)redis_latency_bounds_us[i] / 1e6, calls);
    }
    weir_metrics_put(metrics, "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n", metric->name, calls);
    weir_metrics_put(metrics, "%s_sum %.9f\n", metric->name, (double)ns / 1e9);
    weir_metrics_put(metrics, "%s_count %" PRIu64 "\n", metric->name, calls);
}

struct numbers {
    struct weir_shared_totals totals;
    uint64_t up, breaker;
};
#define AT(member) .at = offsetof(struct numbers, member)
#define STAT(member) AT(totals.stats.member)
_Static_assert(sizeof(_Atomic uint64_t) == sizeof(uint64_t), "read as the numbers of rows");
_Static_assert(sizeof(struct numbers) <= WEIR_METRIC_NUMBERS_MAX, "grow it");

static bool read_numbers(struct weir_daemon *daemon, void *read)
{
    struct numbers *numbers = read;
    struct weir_shared_totals *totals = &numbers->totals;
    if (!weir_daemon_shared(daemon))
        return false;
    weir_shared_store_totals(weir_daemon_shared(daemon), totals);
    numbers->up = totals->workers > 0 && totals->up == totals->workers;
    numbers->breaker = totals->open        ? WEIR_BREAKER_OPEN
                       : totals->half_open ? WEIR_BREAKER_HALF_OPEN
                                           : WEIR_BREAKER_CLOSED;
    return true;
}

static void put_latency(struct weir_metrics *metrics, const struct weir_metric *metric,
                        const void *numbers)
{
    const struct weir_store_redis_stats *stats = &((const struct numbers *)numbers)->totals.stats;
    weir_metrics_latency(metrics, metric, stats->latency_buckets, weir_counted(&stats->latency_ns));
}

static const struct weir_metric rows[] = {
    {"weir_store_up", "gauge", NULL, "1: every worker reaches the store and its breaker is closed.",
     AT(up)},
    {"weir_store_breaker", "gauge", NULL,
     "Circuit breaker of the worker that is worst off: 0 closed, 1 open, 2 half open.",
     AT(breaker)},
    {"weir_store_breaker_opened_total", "counter", NULL,
     "Times that a worker's breaker has opened.", STAT(breaker_opened)},
    {"weir_store_calls_total", "counter", NULL, "Calls sent.", STAT(calls)},
    {"weir_store_call_errors_total", "counter", NULL,
     "Calls that failed, or were refused in words.", STAT(errors)},
    {"weir_store_timeouts_total", "counter", NULL, "Calls without an answer in time.",
     STAT(timeouts)},
    {"weir_store_unknown_total", "counter", NULL, "Calls that may or may not have been executed.",
     STAT(unknown)},
    {"weir_store_redirects_total", "counter", NULL, "Times that a call was sent to another server.",
     STAT(redirects)},
    {"weir_store_rollbacks_total", "counter", NULL, "Reservations given back.", STAT(rollbacks)},
    {"weir_store_remembered_total", "counter", NULL, "Denials answered from memory.",
     STAT(remembered)},
    {"weir_store_leases", "gauge", NULL, "Shares of budgets that are held.", STAT(shares)},
    {"weir_store_lease_refills_total", "counter", NULL, "Shares taken.", STAT(share_refills)},
    {"weir_store_lease_returns_total", "counter", NULL, "Shares given back.", STAT(share_returns)},
    {"weir_store_lease_decisions_total", "counter", NULL, "Decisions made from shares.",
     STAT(share_decisions)},
    {"weir_store_lease_forfeited_total", "counter", NULL,
     "Units of shares that were charged, but neither used nor given back in time.",
     STAT(share_forfeited)},
    {"weir_store_latency_seconds", "histogram", NULL, "Time from a call's writing to its reply.",
     .put = put_latency},
    {.name = NULL},
};
const struct weir_metric_table weir_store_metrics[] = {
    {rows, read_numbers, sizeof(struct numbers)},
    {.rows = NULL},
};
