/* SPDX-License-Identifier: Apache-2.0 */
/* see metrics.h */
#include "server/region/metrics.h"

#include <inttypes.h>

#include "server/region/lenders.h"

/* The name of a family and of a region (64 bytes at most), and what is between them. */
#define SAMPLE_MAX 160

static void put_up(struct weir_metrics *metrics, const struct weir_shared_totals *totals,
                   const char *sample)
{
    weir_metrics_put(metrics, "%s %d\n", sample,
                     totals->workers > 0 && totals->up == totals->workers);
}

/* The mean of the workers that have had an answer yet. */
static void put_roundtrip(struct weir_metrics *metrics, const struct weir_shared_totals *totals,
                          const char *sample)
{
    uint64_t ns = weir_counted(&totals->stats.roundtrip_ns);
    uint64_t known = weir_counted(&totals->stats.roundtrips_known);
    weir_metrics_put(metrics, "%s %.9f\n", sample,
                     known > 0 ? (double)ns / (double)known / 1e9 : 0);
}

static void put_shares(struct weir_metrics *metrics, const struct weir_shared_totals *totals,
                       const char *sample)
{
    weir_metrics_put(metrics, "%s %" PRIu64 "\n", sample, weir_counted(&totals->stats.shares));
}

static void put_calls(struct weir_metrics *metrics, const struct weir_shared_totals *totals,
                      const char *sample)
{
    weir_metrics_put(metrics, "%s %" PRIu64 "\n", sample,
                     weir_counted(&totals->stats.share_refills) +
                         weir_counted(&totals->stats.share_returns));
}

static const struct {
    const char *name, *type, *help; /* help NULL: the family has begun */
    void (*put)(struct weir_metrics *metrics, const struct weir_shared_totals *totals,
                const char *sample);
} families[] = {
    {"weir_region_up", "gauge", NULL, put_up},
    {"weir_region_round_trip_seconds", "gauge",
     "How long calls to the Redis of another region take, smoothed; 0: none was answered yet.",
     put_roundtrip},
    {"weir_region_shares", "gauge", "Keys of which this node holds a share of another region's.",
     put_shares},
    {"weir_region_calls_total", "counter", "Calls to another region that take or return shares.",
     put_calls},
};

void weir_region_metrics(struct weir_metrics *metrics)
{
    struct weir_lenders *lenders = metrics->daemon->lenders;
    for (size_t f = 0; lenders && f < sizeof families / sizeof *families; f++) {
        if (families[f].help)
            weir_metrics_head(metrics, families[f].name, families[f].type, families[f].help);
        for (unsigned i = 0; i < RULES_REGIONS_MAX; i++) {
            char sample[SAMPLE_MAX];
            struct weir_shared_totals totals;
            struct weir_bytes name;
            if (!weir_lenders_totals(lenders, i, &name, &totals))
                continue;
            snprintf(sample, sizeof sample, "%s{region=\"%.*s\"}", families[f].name, (int)name.size,
                     name.data);
            families[f].put(metrics, &totals, sample);
        }
    }
}
