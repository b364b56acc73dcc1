/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of the limits. */
#ifndef WEIR_SERVER_ADMIN_LIMIT_METRICS_H
#define WEIR_SERVER_ADMIN_LIMIT_METRICS_H

#include "engine/effect/candidate.h"
#include "feature/priority/rules/priority.h"
#include "feature/webhook/rules/warn.h"
#include "server/admin/exposition.h"

/* Verdicts of one limit over all workers, and its warnings by threshold. */
struct weir_limit_totals {
    uint64_t allowed, denied, shadow_denied, floor_denied, lent, borrowed, bought;
    uint64_t trials[WEIR_TRIAL_OUTCOMES];
    uint64_t warnings[WEIR_WARN_MAX];
    uint64_t actions[WEIR_ACTIONS];
    uint64_t class_denied[RULES_CLASSES_MAX];
};
void weir_daemon_totals(struct weir_daemon *daemon, const char *name,
                        struct weir_limit_totals *totals);

/* The actions that a limit may take: a bit for each of enum weir_action; 0: it has neither `steps`
 * nor `reject`. */
unsigned weir_limit_actions(const struct weir_rules *rules, uint32_t rule);

/* Requests denied for the standing of their caller, by its level, over all workers. */
void weir_daemon_standing_refusals(const struct weir_daemon *daemon, uint64_t *suspended,
                                   uint64_t *revoked);

/* Adds the totals of a limit that its metrics show to its JSON, by the same rows. */
void weir_limit_totals_json(struct weir_daemon *daemon, uint32_t rule, json_t *json);

/* What each limit of the file has decided, borrowed, tried and warned of. */
extern const struct weir_metric_table weir_limits_metrics[];

/* What the table says of a limit, over all its rates and plans. */
void weir_daemon_table_stats(const struct weir_daemon *daemon, uint32_t rule,
                             struct weir_table_limit_stats *stats);

#endif
