/* SPDX-License-Identifier: Apache-2.0 */
/* see metrics.h */
#include "feature/penalties/server/metrics.h"

#include <inttypes.h>

#include "feature/penalties/server/daemon.h"

/* Those of the rules of the daemon have some. */
static const struct weir_penalty_count *counts_of(const struct weir_metrics *metrics,
                                                  const struct weir_penalty *penalty)
{
    return weir_penalties_count(weir_daemon_penalties(metrics->daemon), penalty->name);
}

static void put_moves(struct weir_metrics *metrics, const struct weir_penalty *penalty,
                      const uint64_t moves[WEIR_STANDING_LEVELS])
{
    for (unsigned level = WEIR_STANDING_WARNED; level <= WEIR_STANDING_REVOKED; level++)
        weir_metrics_put(metrics,
                         "weir_penalty_moves_total{penalty=\"%.*s\",standing=\"%s\"} %" PRIu64 "\n",
                         (int)penalty->name.size, penalty->name.data,
                         weir_standing_level_name((uint8_t)level), moves[level]);
}

static void put_cause(struct weir_metrics *metrics, const char *name, const char *cause,
                      uint64_t count)
{
    weir_metrics_put(metrics, "%s{cause=\"%s\"} %" PRIu64 "\n", name, cause, count);
}

static const struct weir_penalties_ring *ring_of(const struct weir_metrics *metrics)
{
    const struct weir_penalties_run *run = weir_own(metrics->daemon, WEIR_OWN_PENALTIES);
    return &run->ring;
}

static void put_deferred(struct weir_metrics *metrics, const struct weir_penalties_stats *stats)
{
    static const char name[] = "weir_penalty_deferred_total";

    weir_metrics_head(metrics, name, "counter",
                      "Moves that were not made at once, by cause: they are made later.");
    put_cause(metrics, name, "queue", weir_counted(&stats->deferred));
    put_cause(metrics, name, "store", stats->retried);
    put_cause(metrics, name, "ring", weir_penalties_ring_deferred(ring_of(metrics)));
}

static void put_lost(struct weir_metrics *metrics, const struct weir_penalties_stats *stats)
{
    static const char name[] = "weir_penalty_lost_total";

    weir_metrics_head(metrics, name, "counter",
                      "Strikes and moves that were lost, or only partly took effect, by cause.");
    put_cause(metrics, name, "queue", weir_counted(&stats->queue_full));
    put_cause(metrics, name, "store", stats->lost);
    put_cause(metrics, name, "unkept", stats->unkept);
    put_cause(metrics, name, "map", stats->unplaced);
    put_cause(metrics, name, "ring", weir_penalties_ring_lost(ring_of(metrics)));
}

void weir_metrics_of_penalties(struct weir_metrics *metrics)
{
    const struct weir_rules *rules = metrics->daemon->rules;
    uint32_t count = weir_rules_penalty_count(rules);
    const struct weir_penalties_stats *stats;

    if (!weir_daemon_penalties(metrics->daemon) || count == 0)
        return;
    stats = weir_penalties_stats(weir_daemon_penalties(metrics->daemon));
    weir_metrics_head(metrics, "weir_penalty_strikes_total", "counter",
                      "Denials and outcomes that were strikes.");
    for (uint32_t i = 0; i < count; i++) {
        const struct weir_penalty *penalty = weir_rules_penalty(rules, i);

        weir_metrics_put(metrics, "weir_penalty_strikes_total{penalty=\"%.*s\"} %" PRIu64 "\n",
                         (int)penalty->name.size, penalty->name.data,
                         weir_counted(&counts_of(metrics, penalty)->strikes));
    }
    weir_metrics_head(metrics, "weir_penalty_moves_total", "counter",
                      "Steps up the ladders of penalties, by the standing of the step.");
    for (uint32_t i = 0; i < count; i++) {
        const struct weir_penalty *penalty = weir_rules_penalty(rules, i);

        put_moves(metrics, penalty, counts_of(metrics, penalty)->moves);
    }
    put_deferred(metrics, stats);
    put_lost(metrics, stats);
}
