/* SPDX-License-Identifier: Apache-2.0 */
/* see metrics.h */
#include "feature/penalties/server/metrics.h"

#include <inttypes.h>

#include "feature/penalties/server/daemon.h"

/* A name of a penalty has 64 bytes at most. */
#define NAME_ROOM 80

struct numbers {
    const struct weir_rules *rules;
    struct weir_penalties *penalties;
    const struct weir_penalties_ring *ring;
    const struct weir_penalties_stats *stats;
};

static bool read_numbers(struct weir_daemon *daemon, void *read)
{
    const struct weir_penalties_run *run = weir_own(daemon, WEIR_OWN_PENALTIES);
    struct numbers *numbers = read;

    if (!run || !run->penalties || weir_rules_penalty_count(daemon->rules) == 0)
        return false;
    *numbers = (struct numbers){daemon->rules, run->penalties, &run->ring,
                                weir_penalties_stats(run->penalties)};
    return true;
}

/* The name of a penalty, as a label. */
static const char *name_of(const struct weir_penalty *penalty, char name[NAME_ROOM])
{
    snprintf(name, NAME_ROOM, "%.*s", (int)penalty->name.size, penalty->name.data);
    return name;
}

static void put_strikes(struct weir_metrics *metrics, const struct weir_metric *metric,
                        const void *read)
{
    const struct numbers *numbers = read;
    char name[NAME_ROOM];

    for (uint32_t i = 0; i < weir_rules_penalty_count(numbers->rules); i++) {
        const struct weir_penalty *penalty = weir_rules_penalty(numbers->rules, i);

        weir_metrics_value(
            metrics, metric,
            weir_counted(&weir_penalties_count(numbers->penalties, penalty->name)->strikes),
            name_of(penalty, name));
    }
}

static void put_moves(struct weir_metrics *metrics, const struct weir_metric *metric,
                      const void *read)
{
    const struct numbers *numbers = read;
    char name[NAME_ROOM];

    for (uint32_t i = 0; i < weir_rules_penalty_count(numbers->rules); i++) {
        const struct weir_penalty *penalty = weir_rules_penalty(numbers->rules, i);
        const uint64_t *moves = weir_penalties_count(numbers->penalties, penalty->name)->moves;

        for (unsigned level = WEIR_STANDING_WARNED; level <= WEIR_STANDING_REVOKED; level++)
            weir_metrics_value(metrics, metric, moves[level], name_of(penalty, name),
                               weir_standing_level_name((uint8_t)level));
    }
}

static void put_deferred(struct weir_metrics *metrics, const struct weir_metric *metric,
                         const void *read)
{
    const struct numbers *numbers = read;

    weir_metrics_value(metrics, metric, weir_counted(&numbers->stats->deferred), "queue");
    weir_metrics_value(metrics, metric, numbers->stats->retried, "store");
    weir_metrics_value(metrics, metric, weir_penalties_ring_deferred(numbers->ring), "ring");
}

static void put_lost(struct weir_metrics *metrics, const struct weir_metric *metric,
                     const void *read)
{
    const struct numbers *numbers = read;

    weir_metrics_value(metrics, metric, weir_counted(&numbers->stats->queue_full), "queue");
    weir_metrics_value(metrics, metric, numbers->stats->lost, "store");
    weir_metrics_value(metrics, metric, numbers->stats->unkept, "unkept");
    weir_metrics_value(metrics, metric, numbers->stats->unplaced, "map");
    weir_metrics_value(metrics, metric, weir_penalties_ring_lost(numbers->ring), "ring");
}

static const struct weir_metric rows[] = {
    {"weir_penalty_strikes_total", "counter", "penalty", "Denials and outcomes that were strikes.",
     .put = put_strikes},
    {"weir_penalty_moves_total", "counter", "penalty,standing",
     "Steps up the ladders of penalties, by the standing of the step.", .put = put_moves},
    {"weir_penalty_deferred_total", "counter", "cause",
     "Moves that were not made at once, by cause: they are made later.", .put = put_deferred},
    {"weir_penalty_lost_total", "counter", "cause",
     "Strikes and moves that were lost, or only partly took effect, by cause.", .put = put_lost},
    {.name = NULL},
};
const struct weir_metric_table weir_penalties_metrics[] = {
    {rows, read_numbers, sizeof(struct numbers)},
    {.rows = NULL},
};
