/* SPDX-License-Identifier: Apache-2.0 */
/* see metrics.h */
#include "feature/use/server/metrics.h"

#include <inttypes.h>
#include <stdlib.h>

#include "feature/use/server/daemon.h"
#include "feature/use/server/edge_sums.h"
#include "rules/counter.h"

/* Limits with series of their keys' use: those that are used now, at most so many. */
#define LIMITS_MAX 200

/* --- How long denied requests were asked to wait ---------------------------------------------- */

static void put_retries(struct weir_metrics *metrics)
{
    const struct weir_daemon *daemon = metrics->daemon;
    uint64_t buckets[WEIR_RETRY_BOUNDS + 2] = {0}, sum_ms = 0, below = 0;
    for (unsigned w = 0; w < daemon->worker_count; w++) {
        const struct weir_engine_retries *retries = weir_engine_retries(daemon->workers[w]->engine);
        for (unsigned i = 0; i < WEIR_RETRY_BOUNDS + 2; i++)
            buckets[i] += weir_counted(&retries->buckets[i]);
        sum_ms += weir_counted(&retries->sum_ms);
    }
    weir_metrics_head(metrics, "weir_retry_after_seconds", "histogram",
                      "How long denied requests were asked to wait.");
    for (unsigned i = 0; i < WEIR_RETRY_BOUNDS; i++) {
        below += buckets[i];
        weir_metrics_put(metrics,
                         "weir_retry_after_seconds_bucket{le=\"%" PRIu32 "\"} %" PRIu64 "\n",
                         weir_retry_bounds_s[i], below);
    }
    below += buckets[WEIR_RETRY_BOUNDS];
    weir_metrics_put(metrics, "weir_retry_after_seconds_bucket{le=\"+Inf\"} %" PRIu64 "\n", below);
    weir_metrics_put(metrics, "weir_retry_after_seconds_sum %" PRIu64 ".%03" PRIu64 "\n",
                     sum_ms / 1000, sum_ms % 1000);
    weir_metrics_put(metrics, "weir_retry_after_seconds_count %" PRIu64 "\n", below);
    weir_metrics_number(metrics, "weir_retry_never_total", "counter",
                        "Denied requests that no wait admits.", buckets[WEIR_RETRY_BOUNDS + 1]);
}

/* --- Fronts ----------------------------------------------------------------------------------- */

static const struct {
    enum weir_listener_kind kind;
    const char *name;
} fronts[] = {
    {WEIR_LISTENER_HTTP, "http"}, {WEIR_LISTENER_GRPC, "grpc"}, {WEIR_LISTENER_REDIS, "redis"}};

static void put_front(struct weir_metrics *metrics, enum weir_listener_kind kind, const char *name)
{
    const struct weir_daemon *daemon = metrics->daemon;
    uint64_t below = 0, ns = 0;
    for (unsigned i = 0; i <= WEIR_TURN_BUCKETS; i++) {
        for (unsigned w = 0; w < daemon->worker_count; w++)
            below += weir_counted(&daemon->workers[w]->counters.front_turns[kind][i]);
        if (i < WEIR_TURN_BUCKETS)
            weir_metrics_put(metrics,
                             "weir_front_turn_seconds_bucket{front=\"%s\",le=\"0.%06" PRIu32
                             "\"} %" PRIu64 "\n",
                             name, weir_turn_bounds_us[i], below);
    }
    for (unsigned w = 0; w < daemon->worker_count; w++)
        ns += weir_counted(&daemon->workers[w]->counters.front_turn_ns[kind]);
    weir_metrics_put(metrics,
                     "weir_front_turn_seconds_bucket{front=\"%s\",le=\"+Inf\"} %" PRIu64 "\n", name,
                     below);
    weir_metrics_put(metrics,
                     "weir_front_turn_seconds_sum{front=\"%s\"} %" PRIu64 ".%09" PRIu64 "\n", name,
                     ns / 1000000000, ns % 1000000000);
    weir_metrics_put(metrics, "weir_front_turn_seconds_count{front=\"%s\"} %" PRIu64 "\n", name,
                     below);
}

static void put_fronts(struct weir_metrics *metrics)
{
    const struct weir_daemon *daemon = metrics->daemon;
    weir_metrics_head(
        metrics, "weir_front_turn_seconds", "histogram",
        "Time to decide and answer all that a turn has read, of turns with requests of "
        "this front.");
    for (unsigned f = 0; f < 3; f++)
        put_front(metrics, fronts[f].kind, fronts[f].name);
    weir_metrics_head(metrics, "weir_front_decisions_total", "counter",
                      "Requests decided, by the front they came through.");
    for (unsigned f = 0; f < 3; f++) {
        uint64_t decisions = 0;
        for (unsigned w = 0; w < daemon->worker_count; w++)
            decisions += weir_counted(&daemon->workers[w]->counters.by_front[fronts[f].kind]);
        weir_metrics_put(metrics, "weir_front_decisions_total{front=\"%s\"} %" PRIu64 "\n",
                         fronts[f].name, decisions);
    }
}

static void put_refused(struct weir_metrics *metrics)
{
    static const char name[] = "weir_requests_refused_total";
    weir_metrics_head(metrics, name, "counter",
                      "Requests refused, by cause; of those of weir_front_decisions_total.");
    for (unsigned cause = 0; cause < WEIR_CAUSES; cause++)
        weir_metrics_put(
            metrics, "%s{cause=\"%s\"} %" PRIu64 "\n", name, weir_cause_names[cause],
            weir_use_refused(weir_daemon_use(metrics->daemon), (enum weir_cause)cause));
}

/* --- The edge --------------------------------------------------------------------------------- */

static void put_edge_limits(struct weir_metrics *metrics)
{
    static const char name[] = "weir_edge_limit_decisions_total";
    const struct weir_use_service *use = weir_daemon_use(metrics->daemon);
    weir_metrics_head(metrics, name, "counter",
                      "Verdicts of each limit on what other processes on the state file decided.");
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
                weir_metrics_put(metrics, "%s{limit=\"%s\",result=\"%s\"} %" PRIu64 "\n", name,
                                 use->limits[i].name, results[r].name, results[r].count);
    }
}

static const char *const edge_fronts[WEIR_EDGE_FRONTS] = {
    [WEIR_EDGE_LIBRARY] = "library", [WEIR_EDGE_NGINX] = "nginx"};

static void put_edge_failures(struct weir_metrics *metrics, const struct weir_edge *edge)
{
    static const char name[] = "weir_edge_store_failed_total";
    uint64_t failed[WEIR_EDGE_FRONTS];
    weir_edge_failures(edge, failed);
    weir_metrics_head(metrics, name, "counter",
                      "Of these, those that on_store_error decided: the state did not answer, or "
                      "could not be opened.");
    for (unsigned f = 0; f < WEIR_EDGE_FRONTS; f++)
        weir_metrics_put(metrics, "%s{front=\"%s\"} %" PRIu64 "\n", name, edge_fronts[f],
                         failed[f]);
}

static void put_edge(struct weir_metrics *metrics)
{
    static const char name[] = "weir_edge_decisions_total";
    static const char *const results[WEIR_EDGE_RESULTS] = {[WEIR_EDGE_ALLOWED] = "allowed",
                                                           [WEIR_EDGE_DELAYED] = "delayed",
                                                           [WEIR_EDGE_DENIED] = "denied"};
    struct weir_use_service *use = weir_daemon_use(metrics->daemon);
    weir_use_edge_read(use);
    if (!use->edge.file)
        return;
    weir_metrics_number(
        metrics, "weir_edge_standing_unknown_total", "counter",
        "Requests decided by on_store_error of standing, as there was no map of it.",
        weir_edge_unknown(use->edge.file));
    weir_metrics_head(metrics, name, "counter",
                      "Requests that other processes on the state file decided.");
    for (unsigned f = 0; f < WEIR_EDGE_FRONTS; f++)
        for (unsigned r = 0; r < WEIR_EDGE_RESULTS; r++)
            weir_metrics_put(metrics, "%s{front=\"%s\",result=\"%s\"} %" PRIu64 "\n", name,
                             edge_fronts[f], results[r], use->edge.results[f][r]);
    put_edge_failures(metrics, use->edge.file);
    put_edge_limits(metrics);
}

/* --- Policies when the store fails ------------------------------------------------------------ */

static void put_policies(struct weir_metrics *metrics)
{
    static const char *const causes[] = {"timeout", "error"};
    static const struct {
        uint8_t source;
        const char *name;
    } policies[] = {
        {WEIR_SOURCE_OPEN, "open"}, {WEIR_SOURCE_CLOSED, "closed"}, {WEIR_SOURCE_LOCAL, "local"}};
    const struct weir_daemon *daemon = metrics->daemon;
    weir_metrics_head(
        metrics, "weir_store_failures_total", "counter",
        "Decisions that the store did not make, by why and by the on_store_error that "
        "made them.");
    for (unsigned c = 0; c < 2; c++) {
        for (unsigned p = 0; p < 3; p++) {
            uint64_t count = 0;
            for (unsigned w = 0; w < daemon->worker_count; w++)
                count += weir_counted(&weir_engine_failures(daemon->workers[w]->engine)
                                           ->by_policy[c][policies[p].source]);
            weir_metrics_put(metrics,
                             "weir_store_failures_total{cause=\"%s\",policy=\"%s\"} %" PRIu64 "\n",
                             causes[c], policies[p].name, count);
        }
    }
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

static void put_limit_use(struct weir_metrics *metrics, const struct limit_use *limits)
{
    const struct weir_use_service *use = weir_daemon_use(metrics->daemon);
    static const char used[] = "weir_limit_used_percent";
    static const char exhausted[] = "weir_limit_bursts_exhausted";
    uint32_t put = 0;
    weir_metrics_head(metrics, used, "gauge",
                      "What the fullest key seen in the last minute had used of a limit; sampled.");
    for (uint32_t i = 0; i < use->limit_count && put < LIMITS_MAX; i++) {
        if (limits[i].seen)
            weir_metrics_put(metrics, "%s{limit=\"%s\"} %" PRIu64 "\n", used, use->limits[i].name,
                             limits[i].used_percent);
        put += limits[i].seen;
    }
    put = 0;
    weir_metrics_head(metrics, exhausted, "gauge",
                      "Requests of the last minute that took the last of a key's limit; sampled.");
    for (uint32_t i = 0; i < use->limit_count && put < LIMITS_MAX; i++) {
        if (limits[i].seen)
            weir_metrics_put(metrics, "%s{limit=\"%s\"} %" PRIu64 "\n", exhausted,
                             use->limits[i].name, limits[i].exhausted);
        put += limits[i].seen;
    }
}

static void put_keys(struct weir_metrics *metrics)
{
    struct weir_use_service *use = weir_daemon_use(metrics->daemon);
    struct weir_heavy_entry entry;
    uint64_t now_ns = weir_worker_time(metrics->daemon->admin);
    weir_use_collect(use, now_ns);
    struct limit_use *limits = calloc(use->limit_count + 1, sizeof *limits);
    if (!limits || weir_windows_read(use->seen[WEIR_SEEN_KEYS], WEIR_WINDOW_MINUTE, now_ns,
                                     use->read[WEIR_SEEN_KEYS]) < 0) {
        free(limits);
        return;
    }
    for (uint32_t i = 0; i < weir_heavy_used(use->read[WEIR_SEEN_KEYS]); i++) {
        weir_heavy_get(use->read[WEIR_SEEN_KEYS], i, &entry);
        const struct weir_use_limit *limit =
            weir_use_find(use, (struct weir_bytes){entry.name, entry.name_size});
        if (limit)
            add_use(&limits[limit - use->limits], &entry.use);
    }
    put_limit_use(metrics, limits);
    free(limits);
}

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

static void put_denied_keys(struct weir_metrics *metrics)
{
    const struct weir_daemon *daemon = metrics->daemon;
    uint32_t most = weir_rules_settings(daemon->rules)->denials.series;
    size_t max = (size_t)WEIR_TOP_DENIED_KEYS * daemon->worker_count, count = 0;
    struct weir_heavy_entry *list = most > 0 ? calloc(max, sizeof *list) : NULL;
    if (!list)
        return;
    for (unsigned i = 0; i < daemon->worker_count; i++)
        count = weir_top_denied_collect(weir_engine_top_denied(daemon->workers[i]->engine),
                                        (struct weir_bytes){NULL, 0}, list, count, max);
    weir_top_denied_sort(list, count);
    weir_metrics_head(metrics, "weir_denied_key_total", "counter",
                      "Denials of the keys denied most (`series` of `denials`).");
    for (size_t i = 0; i < count && i < most; i++) {
        char name[2 * WEIR_HEAVY_NAME_MAX + 1];
        char text[WEIR_SHOWN_TEXT_MAX], key[2 * WEIR_SHOWN_TEXT_MAX + 1];
        size_t size = weir_shown_text((struct weir_bytes){list[i].text, list[i].text_size}, text);
        label(name, list[i].name, list[i].name_size);
        label(key, text, size);
        weir_metrics_put(metrics, "weir_denied_key_total{limit=\"%s\",key=\"%s\"} %" PRIu64 "\n",
                         name, key, list[i].count);
    }
    free(list);
}

/* --- What is kept ----------------------------------------------------------------------------- */

static void put_kept(struct weir_metrics *metrics)
{
    const struct weir_use_service *use = weir_daemon_use(metrics->daemon);
    static const char name[] = "weir_denials_total";
    uint64_t sampled = 0, lost = 0, more = 0, full = 0;
    for (unsigned i = 0; i < use->observer_count; i++) {
        const struct weir_observer_stats *stats = weir_observer_stats(use->observers[i]);
        sampled += weir_counted(&stats->sampled);
        lost += weir_counted(&stats->lost);
        more += weir_counted(&stats->denials_more);
        full += weir_counted(&stats->denials_full);
    }
    weir_metrics_number(metrics, "weir_use_samples_total", "counter",
                        "Requests that the counts of use are made from.", sampled);
    weir_metrics_number(metrics, "weir_use_samples_lost_total", "counter",
                        "Samples that found the counts being read.", lost);
    weir_metrics_head(metrics, name, "counter", "Denials by what became of them in the log.");
    weir_metrics_put(metrics, "%s{result=\"kept\"} %" PRIu64 "\n", name, use->denial_last);
    weir_metrics_put(metrics, "%s{result=\"left_out\"} %" PRIu64 "\n", name, more);
    weir_metrics_put(metrics, "%s{result=\"lost\"} %" PRIu64 "\n", name, full);
    if (use->file)
        weir_metrics_put(metrics, "%s{result=\"unwritten\"} %" PRIu64 "\n", name,
                         weir_counted(&weir_denial_file_stats(use->file)->dropped));
    weir_metrics_number(metrics, "weir_denials_followers", "gauge",
                        "Calls that wait for the next denial.", use->follower_count);
}

void weir_metrics_of_use(struct weir_metrics *metrics)
{
    put_retries(metrics);
    put_fronts(metrics);
    put_policies(metrics);
    if (weir_daemon_use(metrics->daemon)) { /* a test's daemon has none */
        put_refused(metrics);
        put_edge(metrics);
        put_keys(metrics);
        put_kept(metrics);
    }
    put_denied_keys(metrics);
}
