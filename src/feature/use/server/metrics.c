/* SPDX-License-Identifier: Apache-2.0 */
/* see metrics.h */
#include "feature/use/server/metrics.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "feature/use/engine/top_denied.h"
#include "feature/use/server/daemon.h"
#include "feature/use/server/edge_sums.h"
#include "rules/counter.h"

/* Limits with series of their keys' use: those that are used now, at most so many. */
#define LIMITS_MAX 200

/* --- How long denied requests were asked to wait ---------------------------------------------- */

struct retries {
    uint64_t buckets[WEIR_RETRY_BOUNDS + 2], sum_ms;
};

static bool read_retries(struct weir_daemon *daemon, void *read)
{
    struct retries *numbers = read;
    for (unsigned w = 0; w < daemon->worker_count; w++) {
        const struct weir_engine_retries *retries = weir_engine_retries(daemon->workers[w]->engine);
        for (unsigned i = 0; i < WEIR_RETRY_BOUNDS + 2; i++)
            numbers->buckets[i] += weir_counted(&retries->buckets[i]);
        numbers->sum_ms += weir_counted(&retries->sum_ms);
    }
    return true;
}

static void put_retries(struct weir_metrics *metrics, const struct weir_metric *metric,
                        const void *numbers)
{
    const struct retries *retries = numbers;
    uint64_t below = 0;
    for (unsigned i = 0; i < WEIR_RETRY_BOUNDS; i++) {
        below += retries->buckets[i];
        weir_metrics_put(metrics, "%s_bucket{le=\"%" PRIu32 "\"} %" PRIu64 "\n", metric->name,
                         weir_retry_bounds_s[i], below);
    }
    below += retries->buckets[WEIR_RETRY_BOUNDS];
    weir_metrics_put(metrics, "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n", metric->name, below);
    weir_metrics_put(metrics, "%s_sum %" PRIu64 ".%03" PRIu64 "\n", metric->name,
                     retries->sum_ms / 1000, retries->sum_ms % 1000);
    weir_metrics_put(metrics, "%s_count %" PRIu64 "\n", metric->name, below);
}

static const struct weir_metric retry_rows[] = {
    {"weir_retry_after_seconds", "histogram", NULL, "How long denied requests were asked to wait.",
     .put = put_retries},
    {"weir_retry_never_total", "counter", NULL, "Denied requests that no wait admits.",
     .at = offsetof(struct retries, buckets[WEIR_RETRY_BOUNDS + 1])},
    {.name = NULL},
};

/* --- Fronts ----------------------------------------------------------------------------------- */

static const struct {
    enum weir_listener_kind kind;
    const char *name;
} fronts[] = {
    {WEIR_LISTENER_HTTP, "http"}, {WEIR_LISTENER_GRPC, "grpc"}, {WEIR_LISTENER_REDIS, "redis"}};

static void put_front(struct weir_metrics *metrics, const struct weir_metric *metric,
                      enum weir_listener_kind kind, const char *name)
{
    const struct weir_daemon *daemon = metrics->daemon;
    uint64_t below = 0, ns = 0;
    for (unsigned i = 0; i <= WEIR_TURN_BUCKETS; i++) {
        for (unsigned w = 0; w < daemon->worker_count; w++)
            below += weir_counted(&daemon->workers[w]->counters.front_turns[kind][i]);
        if (i < WEIR_TURN_BUCKETS)
            weir_metrics_put(metrics,
                             "%s_bucket{front=\"%s\",le=\"0.%06" PRIu32 "\"} %" PRIu64 "\n",
                             metric->name, name, weir_turn_bounds_us[i], below);
    }
    for (unsigned w = 0; w < daemon->worker_count; w++)
        ns += weir_counted(&daemon->workers[w]->counters.front_turn_ns[kind]);
    weir_metrics_put(metrics, "%s_bucket{front=\"%s\",le=\"+Inf\"} %" PRIu64 "\n", metric->name,
                     name, below);
    weir_metrics_series(metrics, metric, "_sum", name);
    weir_metrics_put(metrics, "%" PRIu64 ".%09" PRIu64 "\n", ns / 1000000000, ns % 1000000000);
    weir_metrics_series(metrics, metric, "_count", name);
    weir_metrics_put(metrics, "%" PRIu64 "\n", below);
}

static void put_turns(struct weir_metrics *metrics, const struct weir_metric *metric,
                      const void *numbers)
{
    for (unsigned f = 0; f < 3; f++)
        put_front(metrics, metric, fronts[f].kind, fronts[f].name);
}

static void put_decisions(struct weir_metrics *metrics, const struct weir_metric *metric,
                          const void *numbers)
{
    const struct weir_daemon *daemon = metrics->daemon;
    for (unsigned f = 0; f < 3; f++) {
        uint64_t decisions = 0;
        for (unsigned w = 0; w < daemon->worker_count; w++)
            decisions += weir_counted(&daemon->workers[w]->counters.by_front[fronts[f].kind]);
        weir_metrics_value(metrics, metric, decisions, fronts[f].name);
    }
}

/* Policies when the store fails. */
static void put_policies(struct weir_metrics *metrics, const struct weir_metric *metric,
                         const void *numbers)
{
    static const char *const causes[] = {"timeout", "error"};
    static const struct {
        uint8_t source;
        const char *name;
    } policies[] = {
        {WEIR_SOURCE_OPEN, "open"}, {WEIR_SOURCE_CLOSED, "closed"}, {WEIR_SOURCE_LOCAL, "local"}};
    const struct weir_daemon *daemon = metrics->daemon;
    for (unsigned c = 0; c < 2; c++) {
        for (unsigned p = 0; p < 3; p++) {
            uint64_t count = 0;
            for (unsigned w = 0; w < daemon->worker_count; w++)
                count += weir_counted(&weir_engine_failures(daemon->workers[w]->engine)
                                           ->by_policy[c][policies[p].source]);
            weir_metrics_value(metrics, metric, count, causes[c], policies[p].name);
        }
    }
}

static const struct weir_metric front_rows[] = {
    {"weir_front_turn_seconds", "histogram", "front",
     "Time to decide and answer all that a turn has read, of turns with requests of this front.",
     .put = put_turns},
    {"weir_front_decisions_total", "counter", "front",
     "Requests decided, by the front they came through.", .put = put_decisions},
    {"weir_store_failures_total", "counter", "cause,policy",
     "Decisions that the store did not make, by why and by the on_store_error that made them.",
     .put = put_policies},
    {.name = NULL},
};

/* A test's daemon has none. */
static bool has_use(struct weir_daemon *daemon, void *read)
{
    return weir_daemon_use(daemon);
}

static void put_refused(struct weir_metrics *metrics, const struct weir_metric *metric,
                        const void *numbers)
{
    for (unsigned cause = 0; cause < WEIR_CAUSES; cause++)
        weir_metrics_value(
            metrics, metric,
            weir_use_refused(weir_daemon_use(metrics->daemon), (enum weir_cause)cause),
            weir_cause_names[cause]);
}

static const struct weir_metric refused_rows[] = {
    {"weir_requests_refused_total", "counter", "cause",
     "Requests refused, by cause; of those of weir_front_decisions_total.", .put = put_refused},
    {.name = NULL},
};

/* --- The edge --------------------------------------------------------------------------------- */

static const char *const edge_fronts[WEIR_EDGE_FRONTS] = {
    [WEIR_EDGE_LIBRARY] = "library", [WEIR_EDGE_NGINX] = "nginx"};

static bool read_edge(struct weir_daemon *daemon, void *read)
{
    const struct weir_use_service *use = weir_daemon_use(daemon);
    if (!use || !use->edge.file)
        return false;
    *(uint64_t *)read = weir_edge_unknown(use->edge.file);
    return true;
}

static void put_edge(struct weir_metrics *metrics, const struct weir_metric *metric,
                     const void *numbers)
{
    static const char *const results[WEIR_EDGE_RESULTS] = {[WEIR_EDGE_ALLOWED] = "allowed",
                                                           [WEIR_EDGE_DELAYED] = "delayed",
                                                           [WEIR_EDGE_DENIED] = "denied"};
    const struct weir_use_service *use = weir_daemon_use(metrics->daemon);
    for (unsigned f = 0; f < WEIR_EDGE_FRONTS; f++)
        for (unsigned r = 0; r < WEIR_EDGE_RESULTS; r++)
            weir_metrics_value(metrics, metric, use->edge.results[f][r], edge_fronts[f],
                               results[r]);
}

static void put_edge_failures(struct weir_metrics *metrics, const struct weir_metric *metric,
                              const void *numbers)
{
    uint64_t failed[WEIR_EDGE_FRONTS];
    weir_edge_failures(weir_daemon_use(metrics->daemon)->edge.file, failed);
    for (unsigned f = 0; f < WEIR_EDGE_FRONTS; f++)
        weir_metrics_value(metrics, metric, failed[f], edge_fronts[f]);
}

static void put_edge_limits(struct weir_metrics *metrics, const struct weir_metric *metric,
                            const void *numbers)
{
    const struct weir_use_service *use = weir_daemon_use(metrics->daemon);
    for (uint32_t i = 0; i < use->limit_count; i++) {
        const struct weir_edge_sum *sum = &use->limits[i].edge;
        const struct {
            const char *name;
            uint64_t count;
        } results[] = {{"allowed", sum->allowed},
                       {"denied", sum->denied},
                       {"shadow_denied", sum->shadow_denied}};
        for (unsigned r = 0; r < 3; r++)
            if (results[r].count > 0)
                weir_metrics_value(metrics, metric, results[r].count, use->limits[i].name,
                                   results[r].name);
    }
}

static void put_edge_bought(struct weir_metrics *metrics, const struct weir_metric *metric,
                            const void *numbers)
{
    const struct weir_use_service *use = weir_daemon_use(metrics->daemon);
    for (uint32_t i = 0; i < use->limit_count; i++)
        if (use->limits[i].edge_top_up_name != 0)
            weir_metrics_value(metrics, metric, use->limits[i].edge_bought, use->limits[i].name);
}

static const struct weir_metric edge_rows[] = {
    {"weir_edge_standing_unknown_total", "counter", NULL,
     "Requests decided by on_store_error of standing, as there was no map of it.", .at = 0},
    {"weir_edge_decisions_total", "counter", "front,result",
     "Requests that other processes on the state file decided.", .put = put_edge},
    {"weir_edge_store_failed_total", "counter", "front",
     "Of these, those that on_store_error decided: the state did not answer, or could not be "
     "opened.",
     .put = put_edge_failures},
    {"weir_edge_limit_decisions_total", "counter", "limit,result",
     "Verdicts of each limit on what other processes on the state file decided.",
     .put = put_edge_limits},
    {"weir_edge_bought_units_total", "counter", "limit",
     "Units bought above a limit that requests decided there have taken.", .put = put_edge_bought},
    {.name = NULL},
};

/* A text as the value of a label, with what would end it escaped. It is UTF-8 without controls. */
static void label(char *out, const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '"' || text[i] == '\\')
            *out++ = '\\';
        *out++ = text[i];
    }
    *out = 0;
}

/* --- Keys ------------------------------------------------------------------------------------- */

/* What the keys of one limit did in the last minute. */
struct limit_use {
    uint64_t exhausted, used_percent; /* used_percent: of the fullest key */
    bool seen;
};

static void add_use(struct limit_use *limit, const struct weir_heavy_use *use)
{
    uint64_t used = use->capacity > use->remaining ? use->capacity - use->remaining : 0;
    uint64_t percent =
        use->capacity > 0 ? (uint64_t)((double)used * 100 / (double)use->capacity) : 0;
    limit->seen = true;
    limit->exhausted += use->exhausted;
    if (percent > limit->used_percent)
        limit->used_percent = percent;
}

/* Of each limit; NULL: no memory for that. Free it. */
static struct limit_use *read_keys(struct weir_daemon *daemon)
{
    struct weir_use_service *use = weir_daemon_use(daemon);
    struct weir_heavy_entry entry;
    uint64_t now_ns = weir_worker_time(daemon->admin);
    struct limit_use *limits = calloc(use->limit_count + 1, sizeof *limits);
    if (!limits || weir_windows_read(use->seen[WEIR_SEEN_KEYS], WEIR_WINDOW_MINUTE, now_ns,
                                     use->read[WEIR_SEEN_KEYS]) < 0) {
        free(limits);
        return NULL;
    }
    for (uint32_t i = 0; i < weir_heavy_used(use->read[WEIR_SEEN_KEYS]); i++) {
        weir_heavy_get(use->read[WEIR_SEEN_KEYS], i, &entry);
        const struct weir_use_limit *limit =
            weir_use_find(use, (struct weir_bytes){entry.name, entry.name_size});
        if (limit)
            add_use(&limits[limit - use->limits], &entry.use);
    }
    return limits;
}

/* `at`: in struct limit_use. */
static void put_limit_use(struct weir_metrics *metrics, const struct weir_metric *metric,
                          const void *numbers)
{
    const struct weir_use_service *use = weir_daemon_use(metrics->daemon);
    struct limit_use *limits = read_keys(metrics->daemon);
    uint32_t put = 0;
    for (uint32_t i = 0; limits && i < use->limit_count && put < LIMITS_MAX; i++) {
        const char *number = (const char *)&limits[i] + metric->at;
        if (limits[i].seen)
            weir_metrics_value(metrics, metric, *(const uint64_t *)(const void *)number,
                               use->limits[i].name);
        put += limits[i].seen;
    }
    free(limits);
}

static const struct weir_metric key_rows[] = {
    {"weir_limit_used_percent", "gauge", "limit",
     "What the fullest key seen in the last minute had used of a limit; sampled.",
     .at = offsetof(struct limit_use, used_percent), .put = put_limit_use},
    {"weir_limit_bursts_exhausted", "gauge", "limit",
     "Requests of the last minute that took the last of a key's limit; sampled.",
     .at = offsetof(struct limit_use, exhausted), .put = put_limit_use},
    {.name = NULL},
};

static bool wants_denied_keys(struct weir_daemon *daemon, void *read)
{
    return weir_rules_settings(daemon->rules)->denials.series > 0;
}

static void put_keys(struct weir_metrics *metrics, const struct weir_metric *metric,
                     const struct weir_heavy_entry *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char name[2 * WEIR_HEAVY_NAME_MAX + 1];
        char text[WEIR_SHOWN_TEXT_MAX], key[2 * WEIR_SHOWN_TEXT_MAX + 1];
        size_t size = weir_shown_text((struct weir_bytes){list[i].text, list[i].text_size}, text);
        label(name, list[i].name, list[i].name_size);
        label(key, text, size);
        weir_metrics_value(metrics, metric, list[i].count, name, key);
    }
}

static void put_denied_keys(struct weir_metrics *metrics, const struct weir_metric *metric,
                            const void *numbers)
{
    const struct weir_daemon *daemon = metrics->daemon;
    uint32_t most = weir_rules_settings(daemon->rules)->denials.series;
    size_t max = (size_t)WEIR_TOP_DENIED_KEYS * daemon->worker_count, count = 0;
    struct weir_heavy_entry *list = calloc(max, sizeof *list);
    for (unsigned i = 0; list && i < daemon->worker_count; i++)
        count = weir_top_denied_collect(weir_engine_top_denied(daemon->workers[i]->engine),
                                        (struct weir_bytes){NULL, 0}, list, count, max);
    if (list)
        weir_top_denied_sort(list, count);
    put_keys(metrics, metric, list, count < most ? count : most);
    free(list);
}

static bool wants_top(struct weir_daemon *daemon, void *read)
{
    return weir_daemon_use(daemon) && weir_rules_settings(daemon->rules)->denials.top > 0;
}

static int by_count(const void *a, const void *b)
{
    uint64_t one = ((const struct weir_heavy_entry *)a)->count;
    uint64_t other = ((const struct weir_heavy_entry *)b)->count;
    return (one < other) - (one > other);
}

static void put_top(struct weir_metrics *metrics, const struct weir_metric *metric,
                    const void *numbers)
{
    struct weir_use_service *use = weir_daemon_use(metrics->daemon);
    struct weir_heavy *read = use->read[WEIR_SEEN_KEYS];
    uint32_t most = weir_rules_settings(metrics->daemon->rules)->denials.top, count = 0;
    bool known = weir_windows_read(use->seen[WEIR_SEEN_KEYS], WEIR_WINDOW_MINUTE,
                                   weir_worker_time(metrics->daemon->admin), read) == 0;
    struct weir_heavy_entry *list = known ? calloc(weir_heavy_used(read) + 1, sizeof *list) : NULL;
    for (; list && count < weir_heavy_used(read); count++)
        weir_heavy_get(read, count, &list[count]);
    if (list)
        qsort(list, count, sizeof *list, by_count);
    put_keys(metrics, metric, list, count < most ? count : most);
    free(list);
}

static const struct weir_metric top_rows[] = {
    {"weir_top", "gauge", "limit,key",
     "Requests of the last minute of the keys used most (`top` of `denials`); sampled.",
     .put = put_top},
    {.name = NULL},
};

static const struct weir_metric denied_rows[] = {
    {"weir_denied_key_total", "counter", "limit,key",
     "Denials of the keys denied most (`series` of `denials`).", .put = put_denied_keys},
    {.name = NULL},
};

/* --- Totals ----------------------------------------------------------------------------------- */

static void put_routes(struct weir_metrics *metrics, const struct weir_metric *metric,
                       const void *numbers)
{
    const struct weir_totals *totals = &weir_daemon_use(metrics->daemon)->totals;
    for (unsigned i = 0; i <= WEIR_TOTALS_NAMES; i++) {
        const struct weir_totals_row *row = &totals->rows[WEIR_TOTALS_ROUTES][i];
        const char *name = weir_totals_name(totals, WEIR_TOTALS_ROUTES, i);
        char escaped[2 * WEIR_TOTALS_NAME_MAX + 1];
        if (!name)
            continue;
        label(escaped, name, strlen(name));
        weir_metrics_value(metrics, metric, row->count - row->denied, escaped, "allowed");
        weir_metrics_value(metrics, metric, row->denied, escaped, "denied");
    }
}

static void put_bursts(struct weir_metrics *metrics, const struct weir_metric *metric,
                       const void *numbers)
{
    const struct weir_totals *totals = &weir_daemon_use(metrics->daemon)->totals;
    for (unsigned i = 0; i <= WEIR_TOTALS_NAMES; i++) {
        const char *name = weir_totals_name(totals, WEIR_TOTALS_BURSTS, i);
        if (name)
            weir_metrics_value(metrics, metric, totals->rows[WEIR_TOTALS_BURSTS][i].count, name);
    }
}

static void put_waits(struct weir_metrics *metrics, const struct weir_metric *metric,
                      const void *numbers)
{
    const struct weir_totals *totals = &weir_daemon_use(metrics->daemon)->totals;
    for (unsigned i = 0; i <= WEIR_TOTALS_NAMES; i++) {
        const struct weir_totals_row *row = &totals->rows[WEIR_TOTALS_WAITS][i];
        const char *name = weir_totals_name(totals, WEIR_TOTALS_WAITS, i);
        uint64_t below = 0;
        for (unsigned j = 0; name && j < WEIR_RETRY_BOUNDS; j++) {
            below += row->waits[j];
            weir_metrics_put(metrics, "%s_bucket{limit=\"%s\",le=\"%" PRIu32 "\"} %" PRIu64 "\n",
                             metric->name, name, weir_retry_bounds_s[j], below);
        }
        if (!name)
            continue;
        weir_metrics_put(metrics, "%s_bucket{limit=\"%s\",le=\"+Inf\"} %" PRIu64 "\n", metric->name,
                         name, row->count);
        weir_metrics_series(metrics, metric, "_sum", name);
        weir_metrics_put(metrics, "%" PRIu64 ".%03" PRIu64 "\n", row->sum_ms / 1000,
                         row->sum_ms % 1000);
        weir_metrics_series(metrics, metric, "_count", name);
        weir_metrics_put(metrics, "%" PRIu64 "\n", row->count);
    }
}

static const struct weir_metric total_rows[] = {
    {"weir_route_requests_total", "counter", "route,result",
     "Requests by the path pattern of the rules that they are in; sampled. At most 50, and other.",
     .put = put_routes},
    {"weir_limit_exhausted_total", "counter", "limit",
     "Requests that took the last of a key's limit; sampled. At most 50 limits, and other.",
     .put = put_bursts},
    {"weir_limit_retry_after_seconds", "histogram", "limit",
     "How long the denials of the log were asked to wait. At most 50 limits, and other.",
     .put = put_waits},
    {.name = NULL},
};

/* --- What is kept ----------------------------------------------------------------------------- */

struct kept {
    const struct weir_use_service *use;
    uint64_t sampled, lost, more, full, followers;
};
#define KEPT(member) .at = offsetof(struct kept, member)

static bool read_kept(struct weir_daemon *daemon, void *read)
{
    const struct weir_use_service *use = weir_daemon_use(daemon);
    struct kept *kept = read;
    if (!use)
        return false;
    for (unsigned i = 0; i < use->observer_count; i++) {
        const struct weir_observer_stats *stats = weir_observer_stats(use->observers[i]);
        kept->sampled += weir_counted(&stats->sampled);
        kept->lost += weir_counted(&stats->lost);
        kept->more += weir_counted(&stats->denials_more);
        kept->full += weir_counted(&stats->denials_full);
    }
    kept->use = use;
    kept->followers = use->follower_count;
    return true;
}

static void put_denials(struct weir_metrics *metrics, const struct weir_metric *metric,
                        const void *numbers)
{
    const struct kept *kept = numbers;
    weir_metrics_value(metrics, metric, kept->use->denial_last, "kept");
    weir_metrics_value(metrics, metric, kept->more, "left_out");
    weir_metrics_value(metrics, metric, kept->full, "lost");
    if (kept->use->file)
        weir_metrics_value(metrics, metric,
                           weir_counted(&weir_denial_file_stats(kept->use->file)->dropped),
                           "unwritten");
}

static const struct weir_metric kept_rows[] = {
    {"weir_use_samples_total", "counter", NULL, "Requests that the counts of use are made from.",
     KEPT(sampled)},
    {"weir_use_samples_lost_total", "counter", NULL, "Samples that found the counts being read.",
     KEPT(lost)},
    {"weir_denials_total", "counter", "result", "Denials by what became of them in the log.",
     .put = put_denials},
    {"weir_denials_followers", "gauge", NULL, "Calls that wait for the next denial.",
     KEPT(followers)},
    {.name = NULL},
};

void weir_use_scrape(struct weir_daemon *daemon)
{
    struct weir_use_service *use = weir_daemon_use(daemon);
    if (!use)
        return;
    weir_use_edge_read(use);
    weir_use_collect(use, weir_worker_time(daemon->admin));
}

const struct weir_metric_table weir_use_metrics[] = {
    {retry_rows, read_retries, sizeof(struct retries)},
    {front_rows, NULL, 0},
    {refused_rows, has_use, 0},
    {edge_rows, read_edge, sizeof(uint64_t)},
    {key_rows, has_use, 0},
    {total_rows, has_use, 0},
    {top_rows, wants_top, 0},
    {kept_rows, read_kept, sizeof(struct kept)},
    {denied_rows, wants_denied_keys, 0},
    {.rows = NULL},
};
