/* SPDX-License-Identifier: Apache-2.0 */
/* see metrics.h */
#include "feature/region/server/metrics.h"

#include <inttypes.h>

#include "feature/region/rules/region.h"
#include "feature/region/server/daemon.h"
#include "feature/region/server/lenders.h"

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

/* --- Questions ---------------------------------------------------------------------------------
 */

/* Over all workers, of one region. */
struct asked {
    uint64_t results[WEIR_QUESTION_RESULTS], returned, kept;
};

static void sum_asked(const struct weir_daemon *daemon, unsigned region, struct asked *sum)
{
    *sum = (struct asked){.returned = 0};
    for (unsigned w = 0; w < daemon->worker_count; w++) {
        const struct weir_question_counts *counts =
            weir_engine_questions(daemon->workers[w]->engine, region);
        for (unsigned r = 0; r < WEIR_QUESTION_RESULTS; r++)
            sum->results[r] += weir_counted(&counts->results[r]);
        sum->returned += weir_counted(&counts->returned);
        sum->kept += weir_counted(&counts->kept);
    }
}

static void put_results(struct weir_metrics *metrics, struct weir_bytes name,
                        const struct asked *asked)
{
    for (unsigned r = 0; r < WEIR_QUESTION_RESULTS; r++)
        weir_metrics_put(metrics,
                         "weir_region_questions_total{region=\"%.*s\",result=\"%s\"} %" PRIu64 "\n",
                         (int)name.size, name.data, weir_question_name(r), asked->results[r]);
}

static void put_unused(struct weir_metrics *metrics, struct weir_bytes name,
                       const struct asked *asked)
{
    weir_metrics_put(metrics,
                     "weir_region_unused_total{region=\"%.*s\",result=\"returned\"} %" PRIu64
                     "\nweir_region_unused_total{region=\"%.*s\",result=\"kept\"} %" PRIu64 "\n",
                     (int)name.size, name.data, asked->returned, (int)name.size, name.data,
                     asked->kept);
}

static void put_asked(struct weir_metrics *metrics, const char *family, const char *help,
                      void (*put)(struct weir_metrics *metrics, struct weir_bytes name,
                                  const struct asked *asked))
{
    weir_metrics_head(metrics, family, "counter", help);
    for (unsigned i = 0; i < RULES_REGIONS_MAX; i++) {
        struct asked asked;
        struct weir_shared_totals totals;
        struct weir_bytes name;
        if (!weir_lenders_totals(weir_daemon_lenders(metrics->daemon), i, &name, &totals))
            continue;
        sum_asked(metrics->daemon, i, &asked);
        put(metrics, name, &asked);
    }
}

static void put_questions(struct weir_metrics *metrics)
{
    put_asked(metrics, "weir_region_questions_total",
              "Questions to the home of a key, for requests that waited for it.", put_results);
    put_asked(metrics, "weir_region_unused_total",
              "Charges at a home for requests that were not admitted.", put_unused);
}

/* Which limits have floors only, for keys that change their home. */
static void put_moving(struct weir_metrics *metrics)
{
    const struct weir_rules *rules = metrics->daemon->rules;
    bool begun = false;
    for (uint32_t rule = 0; rule < weir_rules_count(rules); rule++) {
        struct weir_region_info region;
        struct weir_rule_info info;
        if (!weir_rules_region(rules, rule, (struct weir_bytes){"", 0}, &region) || region.equal)
            continue;
        if (!begun)
            weir_metrics_head(metrics, "weir_region_moving", "gauge",
                              "1: keys of the limit that change their home have floors only.");
        begun = true;
        weir_rules_info(rules, rule, &info);
        weir_metrics_put(metrics, "weir_region_moving{limit=\"%s\"} %d\n", info.name,
                         weir_rules_is_moving(rules, rule));
    }
}

void weir_region_metrics(struct weir_metrics *metrics)
{
    struct weir_lenders *lenders = weir_daemon_lenders(metrics->daemon);
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
    if (lenders && weir_rules_regions_wait(metrics->daemon->rules))
        put_questions(metrics);
    put_moving(metrics);
}
