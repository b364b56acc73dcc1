/* SPDX-License-Identifier: Apache-2.0 */
/* see metrics.h */
#include "feature/region/server/metrics.h"

#include <inttypes.h>

#include "feature/region/engine/question.h"
#include "feature/region/rules/region.h"
#include "feature/region/server/daemon.h"
#include "feature/region/server/lenders.h"
#include "server/stores/daemon.h"

/* Of one region: this node's, or one that lends. */
/* A name has 64 bytes at most. */
#define NAME_ROOM 80

struct region {
    char name[NAME_ROOM];
    struct weir_shared_totals totals;
};

/* Visits the regions: `self` this node's, which has a store, first. */
static bool region_at(struct weir_daemon *daemon, unsigned i, struct region *region)
{
    struct weir_bytes name;
    if (!weir_lenders_totals(weir_daemon_lenders(daemon), i, &name, &region->totals))
        return false;
    snprintf(region->name, sizeof region->name, "%.*s", (int)name.size, name.data);
    return true;
}

static uint64_t is_up(const struct weir_shared_totals *totals)
{
    return totals->workers > 0 && totals->up == totals->workers;
}

static bool are_there(struct weir_daemon *daemon)
{
    return weir_daemon_shared(daemon) && weir_rules_region_self(daemon->rules).size > 0;
}

static bool read_self(struct weir_daemon *daemon, void *read)
{
    const struct weir_bytes self = weir_rules_region_self(daemon->rules);
    struct region *region = read;
    if (!are_there(daemon))
        return false;
    snprintf(region->name, sizeof region->name, "%.*s", (int)self.size, self.data);
    weir_shared_store_totals(weir_daemon_shared(daemon), &region->totals);
    return true;
}

static void put_up(struct weir_metrics *metrics, const struct weir_metric *metric,
                   const void *numbers)
{
    const struct region *self = numbers;
    struct region region;
    weir_metrics_value(metrics, metric, is_up(&self->totals), self->name);
    for (unsigned i = 0; weir_daemon_lenders(metrics->daemon) && i < RULES_REGIONS_MAX; i++)
        if (region_at(metrics->daemon, i, &region))
            weir_metrics_value(metrics, metric, is_up(&region.totals), region.name);
}

static const struct weir_metric self_rows[] = {
    {"weir_region_up", "gauge", "region",
     "1: every worker reaches the Redis of the region and its breaker is closed.", .put = put_up},
    {.name = NULL},
};

/* --- Lenders ---------------------------------------------------------------------------------- */

static bool read_lenders(struct weir_daemon *daemon, void *read)
{
    return are_there(daemon) && weir_daemon_lenders(daemon);
}

/* The mean of the workers that have had an answer yet. */
static void put_roundtrip(struct weir_metrics *metrics, const struct weir_metric *metric,
                          const void *numbers)
{
    struct region region;
    for (unsigned i = 0; i < RULES_REGIONS_MAX; i++) {
        if (!region_at(metrics->daemon, i, &region))
            continue;
        uint64_t ns = weir_counted(&region.totals.stats.roundtrip_ns);
        uint64_t known = weir_counted(&region.totals.stats.roundtrips_known);
        weir_metrics_series(metrics, metric, "", region.name);
        weir_metrics_put(metrics, "%.9f\n", known > 0 ? (double)ns / (double)known / 1e9 : 0);
    }
}

static void put_shares(struct weir_metrics *metrics, const struct weir_metric *metric,
                       const void *numbers)
{
    struct region region;
    for (unsigned i = 0; i < RULES_REGIONS_MAX; i++)
        if (region_at(metrics->daemon, i, &region))
            weir_metrics_value(metrics, metric, weir_counted(&region.totals.stats.shares),
                               region.name);
}

static void put_calls(struct weir_metrics *metrics, const struct weir_metric *metric,
                      const void *numbers)
{
    struct region region;
    for (unsigned i = 0; i < RULES_REGIONS_MAX; i++)
        if (region_at(metrics->daemon, i, &region))
            weir_metrics_value(metrics, metric,
                               weir_counted(&region.totals.stats.share_refills) +
                                   weir_counted(&region.totals.stats.share_returns),
                               region.name);
}

static const struct weir_metric lender_rows[] = {
    {"weir_region_round_trip_seconds", "gauge", "region",
     "How long calls to the Redis of another region take, smoothed; 0: none was answered yet.",
     .put = put_roundtrip},
    {"weir_region_shares", "gauge", "region",
     "Keys of which this node holds a share of another region's.", .put = put_shares},
    {"weir_region_calls_total", "counter", "region",
     "Calls to another region that take or return shares.", .put = put_calls},
    {.name = NULL},
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

static bool read_questions(struct weir_daemon *daemon, void *read)
{
    return read_lenders(daemon, read) && weir_rules_regions_wait(daemon->rules);
}

static void put_results(struct weir_metrics *metrics, const struct weir_metric *metric,
                        const void *numbers)
{
    struct region region;
    struct asked asked;
    for (unsigned i = 0; i < RULES_REGIONS_MAX; i++) {
        if (!region_at(metrics->daemon, i, &region))
            continue;
        sum_asked(metrics->daemon, i, &asked);
        for (unsigned r = 0; r < WEIR_QUESTION_RESULTS; r++)
            weir_metrics_value(metrics, metric, asked.results[r], region.name,
                               weir_question_name(r));
    }
}

static void put_unused(struct weir_metrics *metrics, const struct weir_metric *metric,
                       const void *numbers)
{
    struct region region;
    struct asked asked;
    for (unsigned i = 0; i < RULES_REGIONS_MAX; i++) {
        if (!region_at(metrics->daemon, i, &region))
            continue;
        sum_asked(metrics->daemon, i, &asked);
        weir_metrics_value(metrics, metric, asked.returned, region.name, "returned");
        weir_metrics_value(metrics, metric, asked.kept, region.name, "kept");
    }
}

static const struct weir_metric question_rows[] = {
    {"weir_region_questions_total", "counter", "region,result",
     "Questions to the home of a key, for requests that waited for it.", .put = put_results},
    {"weir_region_unused_total", "counter", "region,result",
     "Charges at a home for requests that were not admitted.", .put = put_unused},
    {.name = NULL},
};

/* --- Moves ------------------------------------------------------------------------------------ */

/* Whether a limit has floors only, for keys that change their home, may be asked. */
static bool may_move(const struct weir_rules *rules, uint32_t rule)
{
    struct weir_region_info region;
    return weir_rules_region(rules, rule, (struct weir_bytes){"", 0}, &region) && !region.equal;
}

static bool read_moving(struct weir_daemon *daemon, void *read)
{
    bool any = false;
    for (uint32_t rule = 0; rule < weir_rules_count(daemon->rules); rule++)
        any |= may_move(daemon->rules, rule);
    return any && are_there(daemon);
}

/* Which limits have floors only, for keys that change their home. */
static void put_moving(struct weir_metrics *metrics, const struct weir_metric *metric,
                       const void *numbers)
{
    const struct weir_rules *rules = metrics->daemon->rules;
    for (uint32_t rule = 0; rule < weir_rules_count(rules); rule++) {
        struct weir_rule_info info;
        if (!may_move(rules, rule))
            continue;
        weir_rules_info(rules, rule, &info);
        weir_metrics_value(metrics, metric, weir_rules_is_moving(rules, rule), info.name);
    }
}

static const struct weir_metric moving_rows[] = {
    {"weir_region_moving", "gauge", "limit",
     "1: keys of the limit that change their home have floors only.", .put = put_moving},
    {.name = NULL},
};

const struct weir_metric_table weir_region_metrics[] = {
    {self_rows, read_self, sizeof(struct region)},
    {lender_rows, read_lenders, 0},
    {question_rows, read_questions, 0},
    {moving_rows, read_moving, 0},
    {.rows = NULL},
};
