/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of the limits; see metrics.h */
#include "server/admin/limit_metrics.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "engine/counters.h"
#include "feature/region/rules/region.h"
#include "feature/standing/rules/match.h"
#include "rules/actions/reject.h"
#include "rules/actions/steps.h"

void weir_daemon_totals(struct weir_daemon *daemon, const char *name,
                        struct weir_limit_totals *totals)
{
    *totals = (struct weir_limit_totals){0};
    for (unsigned i = 0; i < daemon->worker_count; i++) {
        const struct weir_engine_counters *counters =
            weir_engine_find_counters(daemon->workers[i]->engine, name, strlen(name));
        if (!counters)
            continue; /* this worker has not taken the newest rules yet */
        totals->allowed += weir_counted(&counters->counts.allowed);
        totals->denied += weir_counted(&counters->counts.denied);
        totals->shadow_denied += weir_counted(&counters->counts.shadow_denied);
        totals->floor_denied += weir_counted(&counters->floor_denied);
        totals->lent += weir_counted(&counters->lent);
        totals->borrowed += weir_counted(&counters->borrowed);
        totals->bought += weir_counted(&counters->bought);
        for (int outcome = 0; outcome < WEIR_TRIAL_OUTCOMES; outcome++)
            totals->trials[outcome] += weir_counted(&counters->trials[outcome]);
        for (int threshold = 0; threshold < WEIR_WARN_MAX; threshold++)
            totals->warnings[threshold] += weir_counted(&counters->warnings[threshold]);
        for (int action = 0; action < WEIR_ACTIONS; action++)
            totals->actions[action] += weir_counted(&counters->actions[action]);
        for (int class = 0; class < RULES_CLASSES_MAX; class ++)
            totals->class_denied[class] += weir_counted(&counters->class_denied[class]);
    }
}

unsigned weir_limit_actions(const struct weir_rules *rules, uint32_t rule)
{
    const struct weir_steps *steps = weir_rules_steps(rules, rule);
    const struct weir_reject *reject = weir_rules_reject(rules, rule);
    unsigned actions = 0;
    if (!steps && !reject)
        return 0;
    for (uint8_t i = 0; steps && i < steps->count; i++)
        actions |= 1u << steps->list[i].action;
    if (steps && steps->challenge != 0)
        actions |= 1u << WEIR_ACTION_CHALLENGE;
    return actions |
           1u << (reject && reject->tarpit_ns > 0 ? WEIR_ACTION_TARPIT : WEIR_ACTION_REJECT);
}

/* The accounts that a limit's states pay from: its own, and one for each further state of a key. */
#define STATE_NAMES 8

void weir_daemon_table_stats(const struct weir_daemon *daemon, uint32_t rule,
                             struct weir_table_limit_stats *stats)
{
    const char *names[STATE_NAMES];
    const struct weir_limit *limits;
    uint32_t known = 0, count;
    *stats = (struct weir_table_limit_stats){0, 0};
    for (uint32_t set = 0; weir_rules_rates(daemon->rules, rule, set, &limits, &count); set++) {
        for (uint32_t i = 0; i < count && known < STATE_NAMES; i++) {
            struct weir_table_limit_stats one;
            uint32_t at = 0;
            while (at < known && strcmp(names[at], limits[i].name))
                at++;
            if (at < known)
                continue;
            names[known++] = limits[i].name;
            weir_table_limit_stats(daemon->table, limits[i].name, &one);
            stats->evictions += one.evictions;
            stats->overflows += one.overflows;
        }
    }
}

/* A limit, and what it has counted. */
struct counted {
    struct weir_rule_info info;
    struct weir_limit_totals totals;
    const struct weir_warn_at *warn_at;
    unsigned actions;                     /* weir_limit_actions */
    bool has_floor;                       /* of this region, for keys from abroad */
    bool has_lender;                      /* and homes lend */
    const uint8_t *shed;                  /* NULL: none */
    const struct rules_priority *classes; /* NULL: the rules have none */
    struct weir_table_limit_stats table;
};

static void put_decisions(struct weir_metrics *metrics, const struct weir_metric *metric,
                          const struct counted *limit)
{
    weir_metrics_value(metrics, metric, limit->totals.allowed, limit->info.name, "allowed");
    weir_metrics_value(metrics, metric, limit->totals.denied, limit->info.name, "denied");
    weir_metrics_value(metrics, metric, limit->totals.shadow_denied, limit->info.name,
                       "shadow_denied");
}

void weir_daemon_standing_refusals(const struct weir_daemon *daemon, uint64_t *suspended,
                                   uint64_t *revoked)
{
    *suspended = *revoked = 0;
    for (unsigned i = 0; i < daemon->worker_count; i++) {
        const struct weir_standing_refusals *counters =
            weir_engine_standing_refusals(daemon->workers[i]->engine);
        *suspended += weir_counted(&counters->suspended);
        *revoked += weir_counted(&counters->revoked);
    }
}

static bool has_standing(struct weir_daemon *daemon)
{
    return weir_rules_settings(daemon->rules)->standing->kinds_count > 0;
}

/* Requests that were refused for the standing of their caller, or by `on_unknown: deny`, among the
 * decisions of limits. */
static void put_other_decisions(struct weir_metrics *metrics, const struct weir_metric *metric)
{
    struct weir_daemon *daemon = metrics->daemon;
    uint64_t suspended, revoked, unknown = 0;
    if (has_standing(daemon)) {
        weir_daemon_standing_refusals(daemon, &suspended, &revoked);
        weir_metrics_value(metrics, metric, suspended + revoked, WEIR_ANSWER_BY_STANDING, "denied");
    }
    if (!weir_rules_denies_unknown(daemon->rules))
        return;
    for (unsigned i = 0; i < daemon->worker_count; i++)
        unknown +=
            weir_counted(&weir_engine_standing_refusals(daemon->workers[i]->engine)->unknown);
    weir_metrics_value(metrics, metric, unknown, WEIR_ANSWER_BY_UNKNOWN, "denied");
}

static bool borrows(const struct counted *limit)
{
    return limit->info.pool;
}

static void put_borrowed(struct weir_metrics *metrics, const struct weir_metric *metric,
                         const struct counted *limit)
{
    weir_metrics_value(metrics, metric, limit->totals.borrowed, limit->info.name, limit->info.pool);
}

static bool takes_top_up(const struct counted *limit)
{
    return limit->info.top_up_ns > 0;
}

static bool has_floor(const struct counted *limit)
{
    return limit->has_floor;
}

static bool has_lender(const struct counted *limit)
{
    return limit->has_lender;
}

static bool has_candidate(const struct counted *limit)
{
    return limit->info.candidate_count > 0;
}

static void put_candidates(struct weir_metrics *metrics, const struct weir_metric *metric,
                           const struct counted *limit)
{
    for (int i = 0; i < WEIR_TRIAL_OUTCOMES; i++)
        weir_metrics_value(metrics, metric, limit->totals.trials[i], limit->info.name,
                           weir_trial_name((enum weir_trial_outcome)i));
}

static bool warns(const struct counted *limit)
{
    return limit->warn_at->count > 0;
}

static void put_warnings(struct weir_metrics *metrics, const struct weir_metric *metric,
                         const struct counted *limit)
{
    char threshold[4];
    for (int i = 0; i < limit->warn_at->count; i++) {
        snprintf(threshold, sizeof threshold, "%u", (unsigned)limit->warn_at->percent[i] & 0xff);
        weir_metrics_value(metrics, metric, limit->totals.warnings[i], limit->info.name, threshold);
    }
}

static bool acts(const struct counted *limit)
{
    return limit->actions != 0;
}

static void put_actions(struct weir_metrics *metrics, const struct weir_metric *metric,
                        const struct counted *limit)
{
    for (unsigned action = WEIR_ACTION_MARK; action < WEIR_ACTIONS; action++)
        if ((limit->actions >> action & 1) != 0)
            weir_metrics_value(metrics, metric, limit->totals.actions[action], limit->info.name,
                               weir_action_name((uint8_t)action));
}

static bool sheds(const struct counted *limit)
{
    return limit->shed;
}

static void put_classes(struct weir_metrics *metrics, const struct weir_metric *metric,
                        const struct counted *limit)
{
    for (uint8_t i = 0; i < limit->classes->class_count; i++)
        weir_metrics_value(metrics, metric, limit->totals.class_denied[i], limit->info.name,
                           limit->classes->names[i]);
}

/* What a metric of limits shows. Those that it is not about have no series; where it is about none,
 * it is not there. */
struct family {
    bool (*concerns)(const struct counted *limit); /* NULL: it is about every limit */
    void (*put)(struct weir_metrics *metrics, const struct weir_metric *metric,
                const struct counted *limit); /* NULL: one number ... */
    size_t number;                            /* ... in struct counted */
};
#define NUMBER(member) NULL, offsetof(struct counted, member)

enum {
    DECISIONS,
    BORROWED,
    BOUGHT,
    FLOOR_DENIALS,
    LENT,
    CANDIDATES,
    WARNINGS,
    ACTIONS,
    PRIORITY_DENIALS,
    EVICTIONS,
    OVERFLOWS,
    FAMILIES
};

static const struct family families[FAMILIES] = {
    [DECISIONS] = {NULL, put_decisions, 0},
    [BORROWED] = {borrows, put_borrowed, 0},
    [BOUGHT] = {takes_top_up, NUMBER(totals.bought)},
    [FLOOR_DENIALS] = {has_floor, NUMBER(totals.floor_denied)},
    [LENT] = {has_lender, NUMBER(totals.lent)},
    [CANDIDATES] = {has_candidate, put_candidates, 0},
    [WARNINGS] = {warns, put_warnings, 0},
    [ACTIONS] = {acts, put_actions, 0},
    [PRIORITY_DENIALS] = {sheds, put_classes, 0},
    [EVICTIONS] = {NULL, NUMBER(table.evictions)},
    [OVERFLOWS] = {NULL, NUMBER(table.overflows)},
};

static bool rule_has_floor(const struct weir_rules *rules, uint32_t rule)
{
    struct weir_region_info info;
    return weir_rules_region(rules, rule, (struct weir_bytes){"", 0}, &info) && !info.equal;
}

static void count_limit(struct weir_daemon *daemon, uint32_t rule, struct counted *limit)
{
    weir_rules_info(daemon->rules, rule, &limit->info);
    limit->warn_at = weir_rules_warn_at(daemon->rules, rule);
    limit->actions = weir_limit_actions(daemon->rules, rule);
    limit->shed = weir_rules_shed(daemon->rules, rule);
    limit->has_floor = rule_has_floor(daemon->rules, rule);
    limit->has_lender = weir_rules_is_lent(daemon->rules, rule);
    limit->classes = weir_rules_priority(daemon->rules);
}

static void add_totals(struct weir_daemon *daemon, uint32_t rule, struct counted *limit)
{
    weir_daemon_totals(daemon, limit->info.name, &limit->totals);
    weir_daemon_table_stats(daemon, rule, &limit->table);
}

/* Which families are there. */
static bool read_families(struct weir_daemon *daemon, void *read)
{
    bool *there = read;
    for (size_t i = 0; i < FAMILIES; i++)
        there[i] = !families[i].concerns;
    for (uint32_t rule = 0; rule < weir_rules_count(daemon->rules); rule++) {
        struct counted limit;
        count_limit(daemon, rule, &limit);
        for (size_t i = 0; i < FAMILIES; i++)
            there[i] |= families[i].concerns && families[i].concerns(&limit);
    }
    return true;
}

static bool is_there(const struct weir_metric *metric, const void *numbers)
{
    return ((const bool *)numbers)[metric->at];
}

static void put_one(struct weir_metrics *metrics, const struct weir_metric *metric,
                    const struct family *family, const struct counted *limit)
{
    const char *number = (const char *)limit + family->number;
    if (family->put)
        family->put(metrics, metric, limit);
    else
        weir_metrics_value(metrics, metric, *(const uint64_t *)(const void *)number,
                           limit->info.name);
}

static void put_family(struct weir_metrics *metrics, const struct weir_metric *metric,
                       const void *numbers)
{
    const struct family *family = &families[metric->at];
    struct weir_daemon *daemon = metrics->daemon;
    for (uint32_t rule = 0; rule < weir_rules_count(daemon->rules); rule++) {
        struct counted limit;
        count_limit(daemon, rule, &limit);
        if (family->concerns && !family->concerns(&limit))
            continue;
        add_totals(daemon, rule, &limit);
        put_one(metrics, metric, family, &limit);
    }
    if (metric->at == DECISIONS)
        put_other_decisions(metrics, metric);
}

#define FAMILY(family) .at = (family), .put = put_family, .there = is_there

static const struct weir_metric rows[] = {
    {"weir_decisions_total", "counter", "limit,result",
     "Verdicts of each limit; a shadow limit denies without effect.", FAMILY(DECISIONS),
     .json = "*"},
    {"weir_borrowed_total", "counter", "limit,pool",
     "Requests that a limit denied and its pool admitted.", FAMILY(BORROWED), .json = "borrowed"},
    {"weir_bought_units_total", "counter", "limit",
     "Units bought above a limit that requests have taken.", FAMILY(BOUGHT), .json = "bought"},
    {"weir_region_floor_denials_total", "counter", "limit",
     "Denials by the floor of this region: the key's home is another one.", FAMILY(FLOOR_DENIALS)},
    {"weir_region_lent_total", "counter", "limit",
     "Requests that the home of their key has lent units for.", FAMILY(LENT)},
    {"weir_candidate_total", "counter", "limit,outcome",
     "Verdicts of a limit's candidate beside its own.", FAMILY(CANDIDATES), .json = "candidate.*"},
    {"weir_warnings_total", "counter", "limit,threshold",
     "Times that a key has reached a threshold, once a period.", FAMILY(WARNINGS)},
    {"weir_actions_total", "counter", "limit,action",
     "What steps and reject of a limit have made of requests.", FAMILY(ACTIONS),
     .json = "actions.*"},
    {"weir_priority_denied_total", "counter", "limit,class",
     "Denials of a limit with shed, by the class of the request.", FAMILY(PRIORITY_DENIALS),
     .json = "denied_by_class.*"},
    {"weir_limit_evictions_total", "counter", "limit",
     "States of a limit that made room for others in a full table.", FAMILY(EVICTIONS),
     .json = "evictions"},
    {"weir_limit_overflows_total", "counter", "limit",
     "Checks of a limit for whose keys the table had no room.", FAMILY(OVERFLOWS),
     .json = "overflows"},
    {.name = NULL},
};

void weir_limit_totals_json(struct weir_daemon *daemon, uint32_t rule, json_t *json)
{
    struct weir_metrics metrics = {.daemon = daemon, .json = json};
    struct counted limit;
    count_limit(daemon, rule, &limit);
    add_totals(daemon, rule, &limit);
    for (const struct weir_metric *row = rows; row->name; row++) {
        const struct family *family = &families[row->at];
        if (row->json && (!family->concerns || family->concerns(&limit)))
            put_one(&metrics, row, family, &limit);
    }
}

/* --- Standing --------------------------------------------------------------------------------- */

static bool read_standing(struct weir_daemon *daemon, void *read)
{
    uint64_t *refusals = read;
    if (!has_standing(daemon))
        return false;
    weir_daemon_standing_refusals(daemon, &refusals[0], &refusals[1]);
    return true;
}

static void put_standing(struct weir_metrics *metrics, const struct weir_metric *metric,
                         const void *numbers)
{
    const uint64_t *refusals = numbers;
    weir_metrics_value(metrics, metric, refusals[0], "suspended");
    weir_metrics_value(metrics, metric, refusals[1], "revoked");
}

static const struct weir_metric standing_rows[] = {
    {"weir_standing_refusals_total", "counter", "level",
     "Requests denied for the standing of their caller, by its level.", .put = put_standing},
    {.name = NULL},
};

const struct weir_metric_table weir_limits_metrics[] = {
    {rows, read_families, FAMILIES * sizeof(bool)},
    {standing_rows, read_standing, 2 * sizeof(uint64_t)},
    {.rows = NULL},
};
