/* SPDX-License-Identifier: Apache-2.0 */
/* see metrics.h */
#include "feature/identity/server/metrics.h"

#include <inttypes.h>
#include <stddef.h>

#include "feature/identity/server/daemon.h"
#include "feature/identity/server/directories.h"
#include "server/stores/metrics.h"

struct numbers {
    struct weir_directories_totals totals;
    uint64_t up, overrides;
};
#define AT(member) .at = offsetof(struct numbers, member)
_Static_assert(sizeof(struct numbers) <= WEIR_METRIC_NUMBERS_MAX, "grow it");

static bool read_numbers(struct weir_daemon *daemon, void *read)
{
    struct numbers *numbers = read;
    if (!weir_daemon_directories(daemon))
        return false;
    weir_directories_totals(weir_daemon_directories(daemon), &numbers->totals);
    numbers->up = numbers->totals.workers > 0 && numbers->totals.up == numbers->totals.workers;
    numbers->overrides = numbers->totals.overrides;
    return true;
}

static void put_lookups(struct weir_metrics *metrics, const struct weir_metric *metric,
                        const void *numbers)
{
    const struct weir_directory_counters *counters =
        &((const struct numbers *)numbers)->totals.counters;
    const struct {
        const char *result;
        const _Atomic uint64_t *value;
    } results[] = {
        {"hit", &counters->hit},     {"negative_hit", &counters->negative_hit},
        {"found", &counters->found}, {"unknown", &counters->unknown},
        {"stale", &counters->stale}, {"on_error", &counters->guessed},
        {"error", &counters->error}, {"late", &counters->late},
    };
    for (size_t i = 0; i < sizeof results / sizeof *results; i++)
        weir_metrics_value(metrics, metric, weir_counted(results[i].value), results[i].result);
}

static void put_known(struct weir_metrics *metrics, const struct weir_metric *metric,
                      const void *numbers)
{
    const struct weir_directory_counters *counters =
        &((const struct numbers *)numbers)->totals.counters;
    weir_metrics_value(metrics, metric, weir_counted(&counters->known), "known");
    weir_metrics_value(metrics, metric, weir_counted(&counters->nobody), "nobody");
}

static void put_latency(struct weir_metrics *metrics, const struct weir_metric *metric,
                        const void *numbers)
{
    const struct weir_directory_counters *counters =
        &((const struct numbers *)numbers)->totals.counters;
    weir_metrics_latency(metrics, metric, counters->latency_buckets,
                         weir_counted(&counters->latency_ns));
}

static const struct weir_metric rows[] = {
    {"weir_identities_up", "gauge", NULL,
     "1: every worker reaches the Redis that callers are kept in, and is answered.", AT(up)},
    {"weir_identity_lookups_total", "counter", "result",
     "How it was found out who is calling: from memory, by asking, or not.", .put = put_lookups},
    {"weir_identities", "gauge", "kind", "API keys cached, summed over workers.", .put = put_known},
    {"weir_identity_overrides", "gauge", NULL,
     "Different overrides that callers in Redis have had.", AT(overrides)},
    {"weir_identity_lookup_seconds", "histogram", NULL,
     "Time from asking who a key belongs to, to the answer.", .put = put_latency},
    {.name = NULL},
};
const struct weir_metric_table weir_identities_metrics[] = {
    {rows, read_numbers, sizeof(struct numbers)},
    {.rows = NULL},
};
