/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of the limits; see metrics.h */
#include "server/admin/limit_metrics.h"

#include <inttypes.h>
#include <string.h>

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

static void put_decisions(struct weir_metrics *metrics, const struct counted *limit)
{
    const struct {
        const char *result;
        uint64_t count;
    } results[] = {{"allowed", limit->totals.allowed},
                   {"denied", limit->totals.denied},
                   {"shadow_denied", limit->totals.shadow_denied}};
    for (size_t i = 0; i < sizeof results / sizeof *results; i++)
        weir_metrics_put(metrics, "weir_decisions_total{limit=\"%s\",result=\"%s\"} %" PRIu64 "\n",
                         limit->info.name, results[i].result, results[i].count);
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

/* Requests that were refused for the standing of their caller, by its level. */
static void put_standing(struct weir_metrics *metrics)
{
    struct weir_daemon *daemon = metrics->daemon;
    uint64_t suspended, revoked;
    if (weir_rules_settings(daemon->rules)->standing.kinds_count == 0)
        return;
    weir_daemon_standing_refusals(daemon, &suspended, &revoked);
    weir_metrics_put(metrics,
                     "weir_decisions_total{limit=\"" WEIR_ANSWER_BY_STANDING
                     "\",result=\"denied\"} %" PRIu64 "\n",
                     suspended + revoked);
    weir_metrics_head(metrics, "weir_standing_refusals_total", "counter",
                      "Requests denied for the standing of their caller, by its level.");
    weir_metrics_put(metrics, "weir_standing_refusals_total{level=\"suspended\"} %" PRIu64 "\n",
                     suspended);
    weir_metrics_put(metrics, "weir_standing_refusals_total{level=\"revoked\"} %" PRIu64 "\n",
                     revoked);
}

/* Requests that `on_unknown: deny` refused. */
static void put_unknown(struct weir_metrics *metrics)
{
    struct weir_daemon *daemon = metrics->daemon;
    uint64_t unknown = 0;
    if (!weir_rules_denies_unknown(daemon->rules))
        return;
    for (unsigned i = 0; i < daemon->worker_count; i++)
        unknown +=
            weir_counted(&weir_engine_standing_refusals(daemon->workers[i]->engine)->unknown);
    weir_metrics_put(metrics,
                     "weir_decisions_total{limit=\"" WEIR_ANSWER_BY_UNKNOWN
                     "\",result=\"denied\"} %" PRIu64 "\n",
                     unknown);
}

static bool borrows(const struct counted *limit)
{
    return limit->info.pool;
}

static void put_borrowed(struct weir_metrics *metrics, const struct counted *limit)
{
    weir_metrics_put(metrics, "weir_borrowed_total{limit=\"%s\",pool=\"%s\"} %" PRIu64 "\n",
                     limit->info.name, limit->info.pool, limit->totals.borrowed);
}

static bool takes_top_up(const struct counted *limit)
{
    return limit->info.top_up_ns > 0;
}

static void put_bought(struct weir_metrics *metrics, const struct counted *limit)
{
    weir_metrics_put(metrics, "weir_bought_units_total{limit=\"%s\"} %" PRIu64 "\n",
                     limit->info.name, limit->totals.bought);
}

static bool has_floor(const struct counted *limit)
{
    return limit->has_floor;
}

static void put_floor(struct weir_metrics *metrics, const struct counted *limit)
{
    weir_metrics_put(metrics, "weir_region_floor_denials_total{limit=\"%s\"} %" PRIu64 "\n",
                     limit->info.name, limit->totals.floor_denied);
}

static bool has_lender(const struct counted *limit)
{
    return limit->has_lender;
}

static void put_lent(struct weir_metrics *metrics, const struct counted *limit)
{
    weir_metrics_put(metrics, "weir_region_lent_total{limit=\"%s\"} %" PRIu64 "\n",
                     limit->info.name, limit->totals.lent);
}

static bool has_candidate(const struct counted *limit)
{
    return limit->info.candidate_count > 0;
}

static void put_candidates(struct weir_metrics *metrics, const struct counted *limit)
{
    for (int i = 0; i < WEIR_TRIAL_OUTCOMES; i++)
        weir_metrics_put(metrics, "weir_candidate_total{limit=\"%s\",outcome=\"%s\"} %" PRIu64 "\n",
                         limit->info.name, weir_trial_name((enum weir_trial_outcome)i),
                         limit->totals.trials[i]);
}

static bool warns(const struct counted *limit)
{
    return limit->warn_at->count > 0;
}

static void put_warnings(struct weir_metrics *metrics, const struct counted *limit)
{
    for (int i = 0; i < limit->warn_at->count; i++)
        weir_metrics_put(
            metrics, "weir_warnings_total{limit=\"%s\",threshold=\"%u\"} %" PRIu64 "\n",
            limit->info.name, (unsigned)limit->warn_at->percent[i], limit->totals.warnings[i]);
}

static bool acts(const struct counted *limit)
{
    return limit->actions != 0;
}

static void put_actions(struct weir_metrics *metrics, const struct counted *limit)
{
    for (unsigned action = WEIR_ACTION_MARK; action < WEIR_ACTIONS; action++)
        if ((limit->actions >> action & 1) != 0)
            weir_metrics_put(
                metrics, "weir_actions_total{limit=\"%s\",action=\"%s\"} %" PRIu64 "\n",
                limit->info.name, weir_action_name((uint8_t)action), limit->totals.actions[action]);
}

static bool sheds(const struct counted *limit)
{
    return limit->shed;
}

static void put_classes(struct weir_metrics *metrics, const struct counted *limit)
{
    for (uint8_t i = 0; i < limit->classes->class_count; i++)
        weir_metrics_put(metrics,
                         "weir_priority_denied_total{limit=\"%s\",class=\"%s\"} %" PRIu64 "\n",
                         limit->info.name, limit->classes->names[i], limit->totals.class_denied[i]);
}

static void put_evictions(struct weir_metrics *metrics, const struct counted *limit)
{
    weir_metrics_put(metrics, "weir_limit_evictions_total{limit=\"%s\"} %" PRIu64 "\n",
                     limit->info.name, limit->table.evictions);
}

static void put_overflows(struct weir_metrics *metrics, const struct counted *limit)
{
    weir_metrics_put(metrics, "weir_limit_overflows_total{limit=\"%s\"} %" PRIu64 "\n",
                     limit->info.name, limit->table.overflows);
}

/* A metric of limits. Those that it is not about have no series; where it is about none, it is not
 * there. */
struct family {
    const char *name, *help;
    bool (*concerns)(const struct counted *limit); /* NULL: it is about every limit */
    void (*put)(struct weir_metrics *metrics, const struct counted *limit);
};

static const struct family families[] = {
    {"weir_decisions_total", "Verdicts of each limit; a shadow limit denies without effect.", NULL,
     put_decisions},
    {"weir_borrowed_total", "Requests that a limit denied and its pool admitted.", borrows,
     put_borrowed},
    {"weir_bought_units_total", "Units bought above a limit that requests have taken.",
     takes_top_up, put_bought},
    {"weir_region_floor_denials_total",
     "Denials by the floor of this region: the key's home is another one.", has_floor, put_floor},
    {"weir_region_lent_total", "Requests that the home of their key has lent units for.",
     has_lender, put_lent},
    {"weir_candidate_total", "Verdicts of a limit's candidate beside its own.", has_candidate,
     put_candidates},
    {"weir_warnings_total", "Times that a key has reached a threshold, once a period.", warns,
     put_warnings},
    {"weir_actions_total", "What steps and reject of a limit have made of requests.", acts,
     put_actions},
    {"weir_priority_denied_total", "Denials of a limit with shed, by the class of the request.",
     sheds, put_classes},
    {"weir_limit_evictions_total", "States of a limit that made room for others in a full table.",
     NULL, put_evictions},
    {"weir_limit_overflows_total", "Checks of a limit for whose keys the table had no room.", NULL,
     put_overflows},
};

static bool rule_has_floor(const struct weir_rules *rules, uint32_t rule)
{
    struct weir_region_info info;
    return weir_rules_region(rules, rule, (struct weir_bytes){"", 0}, &info) && !info.equal;
}

static void put_family(struct weir_metrics *metrics, const struct family *family)
{
    struct weir_daemon *daemon = metrics->daemon;
    bool begun = !family->concerns;
    if (begun)
        weir_metrics_head(metrics, family->name, "counter", family->help);
    for (uint32_t rule = 0; rule < weir_rules_count(daemon->rules); rule++) {
        struct counted limit;
        weir_rules_info(daemon->rules, rule, &limit.info);
        limit.warn_at = weir_rules_warn_at(daemon->rules, rule);
        limit.actions = weir_limit_actions(daemon->rules, rule);
        limit.shed = weir_rules_shed(daemon->rules, rule);
        limit.has_floor = rule_has_floor(daemon->rules, rule);
        limit.has_lender = weir_rules_is_lent(daemon->rules, rule);
        limit.classes = weir_rules_priority(daemon->rules);
        if (family->concerns && !family->concerns(&limit))
            continue;
        if (!begun)
            weir_metrics_head(metrics, family->name, "counter", family->help);
        begun = true;
        weir_daemon_totals(daemon, limit.info.name, &limit.totals);
        weir_daemon_table_stats(daemon, rule, &limit.table);
        family->put(metrics, &limit);
    }
}

void weir_metrics_of_limits(struct weir_metrics *metrics)
{
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        put_family(metrics, &families[i]);
        if (i == 0) /* among the decisions */
            put_standing(metrics);
        put_unknown(metrics);
    }
}
