/* SPDX-License-Identifier: Apache-2.0 */
/* see metrics.h */
#include "feature/standing/server/metrics.h"

#include <inttypes.h>

#include "feature/standing/server/daemon.h"
#include "feature/standing/server/service.h"
#include "feature/standing/server/sharing.h"

static void put_entries(struct weir_metrics *metrics, const struct weir_standing_stats *stats)
{
    weir_metrics_head(metrics, "weir_standing_entries", "gauge",
                      "Entries of the map of standing; those that have ended go within a second.");
    for (uint8_t level = 0; level < WEIR_STANDING_LEVELS; level++)
        for (uint8_t origin = 0; origin < WEIR_STANDING_ORIGINS; origin++)
            weir_metrics_put(metrics, "weir_standing_entries{level=\"%s\",origin=\"%s\"} %zu\n",
                             weir_standing_level_name(level), weir_standing_origin_name(origin),
                             stats->levels[level][origin]);
}

static void put_changes(struct weir_metrics *metrics, const struct weir_standing_tally *tally)
{
    weir_metrics_head(metrics, "weir_standing_changes_total", "counter",
                      "Changes of standing that came in force.");
    weir_metrics_put(metrics, "weir_standing_changes_total{change=\"set\"} %" PRIu64 "\n",
                     tally->sets);
    weir_metrics_put(metrics, "weir_standing_changes_total{change=\"clear\"} %" PRIu64 "\n",
                     tally->clears);
    weir_metrics_head(metrics, "weir_standing_unkept_total", "counter",
                      "Changes that the history did not keep at once: `queue`: it had no room, "
                      "they are refused or "
                      "in force until a restart; `late`: they were answered, and wait for it.");
    weir_metrics_put(metrics, "weir_standing_unkept_total{cause=\"queue\"} %" PRIu64 "\n",
                     tally->queue_full);
    weir_metrics_put(metrics, "weir_standing_unkept_total{cause=\"late\"} %" PRIu64 "\n",
                     tally->late);
}

static void put_bans(struct weir_metrics *metrics, struct weir_bans *bans)
{
    struct weir_bans_counts counts;

    weir_bans_counts(bans, &counts);
    weir_metrics_head(metrics, "weir_standing_bans_total", "counter",
                      "Bans of networks for a layer below weir, by what became of them.");
    weir_metrics_put(metrics, "weir_standing_bans_total{result=\"published\"} %" PRIu64 "\n",
                     counts.published);
    weir_metrics_put(metrics, "weir_standing_bans_total{result=\"unproven\"} %" PRIu64 "\n",
                     counts.unproven);
    weir_metrics_put(metrics, "weir_standing_bans_total{result=\"protected\"} %" PRIu64 "\n",
                     counts.kept);
    weir_metrics_put(metrics, "weir_standing_bans_total{result=\"full\"} %" PRIu64 "\n",
                     counts.full);
}

/* The connection to Redis, where nodes share their standing. */
static void put_sharing(struct weir_metrics *metrics, const struct weir_standing_sharing *sharing)
{
    struct weir_shared_standing_stats stats;

    if (!sharing || !sharing->shared)
        return;
    weir_shared_standing_stats(sharing->shared, &stats);
    weir_metrics_number(
        metrics, "weir_standing_shared_up", "gauge",
        "1: standing is read from Redis; 0: Redis is away, and its last known state counts.",
        stats.reached && stats.follow.whole);
    weir_metrics_number(metrics, "weir_standing_shared_change", "gauge",
                        "The number of the newest change of standing read from Redis.",
                        stats.follow.number);
    weir_metrics_number(metrics, "weir_standing_shared_changes_total", "counter",
                        "Changes of standing read from Redis.", stats.changes);
    weir_metrics_number(metrics, "weir_standing_shared_gaps_total", "counter",
                        "Times that a change was missed, so that all entries were read again.",
                        stats.follow.gaps);
    weir_metrics_number(metrics, "weir_standing_shared_reads_total", "counter",
                        "Times that all entries were read from Redis.", stats.follow.reads);
    weir_metrics_number(metrics, "weir_standing_shared_unplaced_total", "counter",
                        "Entries in Redis that do not count on this node: its map is full, they "
                        "cannot be read, or they need its restart.",
                        sharing->unplaced + stats.wrong);
}

void weir_metrics_of_standing(struct weir_metrics *metrics)
{
    struct weir_standing_service *service = weir_daemon_standing(metrics->daemon);
    struct weir_standing_stats stats;

    if (!service)
        return;
    weir_standing_stats(service->map, &stats);
    put_entries(metrics, &stats);
    weir_metrics_number(metrics, "weir_standing_entries_max", "gauge",
                        "Entries that the map of standing has room for.", stats.entries_max);
    weir_metrics_number(metrics, "weir_standing_evicted_total", "counter",
                        "Entries that went before their end because the map was full.",
                        stats.evicted);
    weir_metrics_number(metrics, "weir_standing_refused_total", "counter",
                        "Entries that the full map had no room for.", stats.refused);
    put_changes(metrics, &service->tally);
    weir_metrics_number(metrics, "weir_standing_map_up", "gauge",
                        "1: the file of the map is whole; 0: it cannot be made now.",
                        !service->map_down);
    weir_metrics_number(
        metrics, "weir_standing_map_remakes_total", "counter",
        "Times that the file of the map was made anew, as it was deleted, replaced, cut "
        "short or overwritten.",
        service->tally.remakes);
    weir_metrics_number(metrics, "weir_standing_history_jobs", "gauge",
                        "Calls and changes that wait for the history.",
                        service->keeper ? weir_keeper_jobs(service->keeper) : 0);
    if (service->keeper && !service->sharing)
        weir_metrics_number(metrics, "weir_standing_history_up", "gauge",
                            "1: the history takes changes; 0: they wait, or are lost at a stop.",
                            !service->kept.down);
    put_sharing(metrics, service->sharing);
    put_bans(metrics, service->bans);
}
