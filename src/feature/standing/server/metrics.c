/* SPDX-License-Identifier: Apache-2.0 */
/* see metrics.h */
#include "feature/standing/server/metrics.h"

#include <inttypes.h>
#include <stddef.h>

#include "feature/standing/server/daemon.h"
#include "feature/standing/server/service.h"
#include "feature/standing/server/sharing.h"

struct numbers {
    const struct weir_standing_tally *tally;
    struct weir_standing_stats stats;
    struct weir_bans_counts bans;
    bool keeps; /* a history of its own */
    uint64_t entries_max, evicted, refused, map_up, remakes, jobs, history_up;
};
#define AT(member) .at = offsetof(struct numbers, member)
_Static_assert(sizeof(struct numbers) <= WEIR_METRIC_NUMBERS_MAX, "grow it");

static bool read_numbers(struct weir_daemon *daemon, void *read)
{
    const struct weir_standing_service *service = weir_daemon_standing(daemon);
    struct numbers *numbers = read;

    if (!service)
        return false;
    weir_standing_stats(service->map, &numbers->stats);
    weir_bans_counts(service->bans, &numbers->bans);
    numbers->tally = &service->tally;
    numbers->keeps = service->keeper && !service->sharing;
    numbers->entries_max = numbers->stats.entries_max;
    numbers->evicted = numbers->stats.evicted;
    numbers->refused = numbers->stats.refused;
    numbers->map_up = !service->map_down;
    numbers->remakes = service->tally.remakes;
    numbers->jobs = service->keeper ? weir_keeper_jobs(service->keeper) : 0;
    numbers->history_up = !service->kept.down;
    return true;
}

static void put_entries(struct weir_metrics *metrics, const struct weir_metric *metric,
                        const void *numbers)
{
    const struct weir_standing_stats *stats = &((const struct numbers *)numbers)->stats;

    for (uint8_t level = 0; level < WEIR_STANDING_LEVELS; level++)
        for (uint8_t origin = 0; origin < WEIR_STANDING_ORIGINS; origin++)
            weir_metrics_value(metrics, metric, stats->levels[level][origin],
                               weir_standing_level_name(level), weir_standing_origin_name(origin));
}

static void put_changes(struct weir_metrics *metrics, const struct weir_metric *metric,
                        const void *numbers)
{
    const struct weir_standing_tally *tally = ((const struct numbers *)numbers)->tally;

    weir_metrics_value(metrics, metric, tally->sets, "set");
    weir_metrics_value(metrics, metric, tally->clears, "clear");
}

static void put_unkept(struct weir_metrics *metrics, const struct weir_metric *metric,
                       const void *numbers)
{
    const struct weir_standing_tally *tally = ((const struct numbers *)numbers)->tally;

    weir_metrics_value(metrics, metric, tally->queue_full, "queue");
    weir_metrics_value(metrics, metric, tally->late, "late");
}

static bool has_history(const struct weir_metric *metric, const void *numbers)
{
    return ((const struct numbers *)numbers)->keeps;
}

static const struct weir_metric rows[] = {
    {"weir_standing_entries", "gauge", "level,origin",
     "Entries of the map of standing; those that have ended go within a second.",
     .put = put_entries},
    {"weir_standing_entries_max", "gauge", NULL, "Entries that the map of standing has room for.",
     AT(entries_max)},
    {"weir_standing_evicted_total", "counter", NULL,
     "Entries that went before their end because the map was full.", AT(evicted)},
    {"weir_standing_refused_total", "counter", NULL, "Entries that the full map had no room for.",
     AT(refused)},
    {"weir_standing_changes_total", "counter", "change", "Changes of standing that came in force.",
     .put = put_changes},
    {"weir_standing_unkept_total", "counter", "cause",
     "Changes that the history did not keep at once: `queue`: it had no room, they are refused or "
     "in force until a restart; `late`: they were answered, and wait for it.",
     .put = put_unkept},
    {"weir_standing_map_up", "gauge", NULL,
     "1: the file of the map is whole; 0: it cannot be made now.", AT(map_up)},
    {"weir_standing_map_remakes_total", "counter", NULL,
     "Times that the file of the map was recreated, as it was deleted, replaced, cut "
     "short or overwritten.",
     AT(remakes)},
    {"weir_standing_history_jobs", "gauge", NULL, "Calls and changes that wait for the history.",
     AT(jobs)},
    {"weir_standing_history_up", "gauge", NULL,
     "1: the history takes changes; 0: they wait, or are lost at a stop.", AT(history_up),
     .there = has_history},
    {.name = NULL},
};

/* --- The connection to Redis, where nodes share their standing -------------------------------- */

struct shared {
    uint64_t up, change, changes, gaps, reads, unplaced;
};
#define SHARED(member) .at = offsetof(struct shared, member)

static bool read_shared(struct weir_daemon *daemon, void *read)
{
    const struct weir_standing_service *service = weir_daemon_standing(daemon);
    const struct weir_standing_sharing *sharing = service ? service->sharing : NULL;
    struct weir_shared_standing_stats stats;

    if (!sharing || !sharing->shared)
        return false;
    weir_shared_standing_stats(sharing->shared, &stats);
    *(struct shared *)read = (struct shared){
        .up = stats.reached && stats.follow.whole,
        .change = stats.follow.number,
        .changes = stats.changes,
        .gaps = stats.follow.gaps,
        .reads = stats.follow.reads,
        .unplaced = sharing->unplaced + stats.wrong,
    };
    return true;
}

static const struct weir_metric shared_rows[] = {
    {"weir_standing_shared_up", "gauge", NULL,
     "1: standing is read from Redis; 0: Redis is away, and its last known state counts.",
     SHARED(up)},
    {"weir_standing_shared_change", "gauge", NULL,
     "The number of the newest change of standing read from Redis.", SHARED(change)},
    {"weir_standing_shared_changes_total", "counter", NULL, "Changes of standing read from Redis.",
     SHARED(changes)},
    {"weir_standing_shared_gaps_total", "counter", NULL,
     "Times that a change was missed, so that all entries were read again.", SHARED(gaps)},
    {"weir_standing_shared_reads_total", "counter", NULL,
     "Times that all entries were read from Redis.", SHARED(reads)},
    {"weir_standing_shared_unplaced_total", "counter", NULL,
     "Entries in Redis that do not count on this node: its map is full, they "
     "cannot be read, or they need its restart.",
     SHARED(unplaced)},
    {.name = NULL},
};

/* --- Bans ------------------------------------------------------------------------------------- */

static void put_bans(struct weir_metrics *metrics, const struct weir_metric *metric,
                     const void *numbers)
{
    const struct weir_bans_counts *bans = &((const struct numbers *)numbers)->bans;

    weir_metrics_value(metrics, metric, bans->published, "published");
    weir_metrics_value(metrics, metric, bans->unproven, "unproven");
    weir_metrics_value(metrics, metric, bans->kept, "protected");
    weir_metrics_value(metrics, metric, bans->full, "full");
}

static const struct weir_metric ban_rows[] = {
    {"weir_standing_bans_total", "counter", "result",
     "Bans of networks for a layer below weir, by what became of them.", .put = put_bans},
    {.name = NULL},
};

const struct weir_metric_table weir_standing_metrics[] = {
    {rows, read_numbers, sizeof(struct numbers)},
    {shared_rows, read_shared, sizeof(struct shared)},
    {ban_rows, read_numbers, sizeof(struct numbers)},
    {.rows = NULL},
};
