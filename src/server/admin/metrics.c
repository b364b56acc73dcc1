/* SPDX-License-Identifier: Apache-2.0 */
/* All metrics, in their order: see docs/metrics.md. */
#include "server/admin/metrics.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/counters.h"
#include "feature/identity/rules/tokens.h"
#include "server/admin/exposition.h"
#include "server/daemon/addresses.h"
#include "server/daemon/clock.h"
#include "server/daemon/services/services.h"
#include "server/http/http.h"

/* --- The process ------------------------------------------------------------------------------ */

struct process {
    uint64_t workers, limits, deprecated, file_lost, reloading, dropped;
};
#define PROCESS(member) .at = offsetof(struct process, member)

static bool read_process(struct weir_daemon *daemon, void *read)
{
    enum weir_table_file file = daemon->file.state;
    *(struct process *)read = (struct process){
        .workers = daemon->worker_count,
        .limits = weir_rules_count(daemon->rules),
        .deprecated = weir_rules_deprecated(daemon->rules),
        .file_lost = file == WEIR_TABLE_FILE_GONE || file == WEIR_TABLE_FILE_OTHER,
        .reloading = daemon->reload.daemon != NULL,
        .dropped = weir_counted(&daemon->log.dropped_total),
    };
    return true;
}

static void put_build(struct weir_metrics *metrics, const struct weir_metric *metric,
                      const void *numbers)
{
    weir_metrics_value(metrics, metric, 1, WEIR_VERSION);
}

static void put_reloads(struct weir_metrics *metrics, const struct weir_metric *metric,
                        const void *numbers)
{
    weir_metrics_value(metrics, metric, metrics->daemon->loads.count, "ok");
    weir_metrics_value(metrics, metric, metrics->daemon->loads.failed, "failed");
}

/* `at`: of nanoseconds in struct weir_daemon. */
static void put_time(struct weir_metrics *metrics, const struct weir_metric *metric,
                     const void *numbers)
{
    const char *number = (const char *)metrics->daemon + metric->at;
    weir_metrics_seconds(metrics, metric, *(const int64_t *)(const void *)number);
}
#define TIME(member) .at = offsetof(struct weir_daemon, member), .put = put_time

static const struct weir_metric process_rows[] = {
    {"weir_build_info", "gauge", "version", "What runs.", .put = put_build},
    {"weir_start_time_seconds", "gauge", NULL, "When it started, since the epoch.",
     TIME(loads.started_wall_ns)},
    {"weir_workers", "gauge", NULL, "Threads that decide.", PROCESS(workers)},
    {"weir_limits", "gauge", NULL, "Limits in the rules.", PROCESS(limits)},
    {"weir_rules_deprecated", "gauge", NULL,
     "Things in the rules file that a later version refuses.", PROCESS(deprecated)},
    {"weir_reloads_total", "counter", "result", "Times the rules file was read again.",
     .put = put_reloads},
    {"weir_state_file_lost", "gauge", NULL,
     "1: the path of the state file no longer names the file in use.", PROCESS(file_lost)},
    {"weir_reload_running", "gauge", NULL, "1: the rules file is being read again.",
     PROCESS(reloading)},
    {"weir_reload_duration_seconds", "gauge", NULL,
     "How long the last reload took, a failed one too.", TIME(loads.took_ns)},
    {"weir_rules_loaded_seconds", "gauge", NULL,
     "When the rules in use were read, since the epoch.", TIME(loads.last_wall_ns)},
    {"weir_clock_offset_seconds", "gauge", NULL,
     "Wall clock minus the time that decisions are made by.", TIME(drift.offset_ns)},
    {"weir_log_lines_dropped_total", "counter", NULL,
     "Log lines left out because there were too many a second.", PROCESS(dropped)},
    {.name = NULL},
};

/* --- Listeners -------------------------------------------------------------------------------- */

/* The listeners, each once: the workers' are those of the first. NULL: no more. */
static const struct weir_listener *listener_at(const struct weir_daemon *daemon, unsigned i)
{
    unsigned others = 0;
    while (weir_worker_listener(daemon->workers[0], others))
        others++;
    return i < others ? weir_worker_listener(daemon->workers[0], i)
                      : weir_worker_listener(daemon->admin, i - others);
}

/* Listener `i` of listener_at in worker `w`; NULL: it has no such worker. */
static const struct weir_listener *listener_of(const struct weir_daemon *daemon, unsigned i,
                                               unsigned w)
{
    const struct weir_listener *listener = listener_at(daemon, i);
    if (listener->worker == daemon->admin || w == 0)
        return w == 0 ? listener : NULL;
    return w < daemon->worker_count ? weir_worker_listener(daemon->workers[w], i) : NULL;
}

/* The first row with the name of row `r`, where those of one name are counted; the last is no row.
 */
static unsigned row_of_name(const struct weir_http *http, unsigned r)
{
    unsigned first = 0;
    while (r < http->route_count && strcmp(http->routes[first].name, http->routes[r].name))
        first++;
    return r < http->route_count ? first : r;
}

/* Requests of listener `i` by route and status; series that are zero are left out. */
static void put_listener_requests(struct weir_metrics *metrics, const struct weir_metric *metric,
                                  unsigned i)
{
    uint64_t totals[WEIR_HTTP_ROUTES_MAX + 1][WEIR_HTTP_STATUS_COUNT] = {0};
    const struct weir_listener *listener = listener_of(metrics->daemon, i, 0), *same;
    const struct weir_http *sample = listener->workspace;
    char code[4];
    for (unsigned w = 0; (same = listener_of(metrics->daemon, i, w)); w++) {
        const struct weir_http *http = same->workspace;
        for (unsigned r = 0; r <= http->route_count; r++)
            for (unsigned s = 0; s < WEIR_HTTP_STATUS_COUNT; s++)
                totals[row_of_name(http, r)][s] += weir_counted(&http->requests[r][s]);
    }
    for (unsigned r = 0; r <= sample->route_count; r++) {
        for (unsigned s = 0; s < WEIR_HTTP_STATUS_COUNT; s++) {
            if (!totals[r][s])
                continue;
            snprintf(code, sizeof code, "%03u", weir_http_code((enum weir_http_status)s) % 1000);
            weir_metrics_value(metrics, metric, totals[r][s], listener->front->name,
                               r < sample->route_count ? sample->routes[r].name : "none", code);
        }
    }
}

/* Of the listeners that speak HTTP. */
static void put_requests(struct weir_metrics *metrics, const struct weir_metric *metric,
                         const void *numbers)
{
    const struct weir_listener *listener;
    for (unsigned i = 0; (listener = listener_at(metrics->daemon, i)); i++)
        if (listener->front->http)
            put_listener_requests(metrics, metric, i);
}

static void put_open(struct weir_metrics *metrics, const struct weir_metric *metric,
                     const void *numbers)
{
    const struct weir_listener *listener;
    for (unsigned i = 0; (listener = listener_at(metrics->daemon, i)); i++)
        weir_metrics_value(metrics, metric,
                           atomic_load_explicit(&listener->pool->open, memory_order_relaxed),
                           listener->front->name);
}

static void put_max(struct weir_metrics *metrics, const struct weir_metric *metric,
                    const void *numbers)
{
    const struct weir_listener *listener;
    for (unsigned i = 0; (listener = listener_at(metrics->daemon, i)); i++)
        weir_metrics_value(metrics, metric, listener->pool->max, listener->front->name);
}

/* `at`: of a counter in a pool. */
static void put_pools(struct weir_metrics *metrics, const struct weir_metric *metric,
                      const void *numbers)
{
    const struct weir_listener *listener;
    for (unsigned i = 0; (listener = listener_at(metrics->daemon, i)); i++) {
        const void *number = (const char *)listener->pool + metric->at;
        weir_metrics_value(metrics, metric, weir_counted((const _Atomic uint64_t *)number),
                           listener->front->name);
    }
}
#define POOL(member) .at = offsetof(struct weir_connection_pool, member), .put = put_pools

/* Passwords and tokens: listener `i` of each worker is the same one. */
static void put_guesses(struct weir_metrics *metrics, const struct weir_metric *metric,
                        const void *numbers)
{
    const struct weir_listener *listener;
    for (unsigned i = 0; (listener = listener_at(metrics->daemon, i)); i++) {
        const struct weir_listener *same;
        uint64_t wrong = 0, refused = 0;
        for (unsigned w = 0; (same = listener_of(metrics->daemon, i, w)); w++) {
            wrong += weir_counted(&same->wrong_guesses);
            refused += weir_counted(&same->refused_guesses);
        }
        weir_metrics_value(metrics, metric, wrong, listener->front->name, "wrong");
        weir_metrics_value(metrics, metric, refused, listener->front->name, "refused");
    }
}

/* Refused by `server.connections`. */
static void put_limited(struct weir_metrics *metrics, const struct weir_metric *metric,
                        const void *numbers)
{
    static const char *const reasons[] = {
        [WEIR_PEER_ADDRESS] = "address", [WEIR_PEER_PREFIX] = "prefix", [WEIR_PEER_RATE] = "rate"};
    const struct weir_listener *listener;
    for (unsigned i = 0; (listener = listener_at(metrics->daemon, i)); i++)
        for (int j = WEIR_PEER_ADDRESS; j < WEIR_PEER_VERDICTS; j++)
            weir_metrics_value(metrics, metric, weir_counted(&listener->pool->limited[j]),
                               listener->front->name, reasons[j]);
}

static const struct weir_metric listener_rows[] = {
    {"weir_requests_total", "counter", "front,route,code", "HTTP requests answered.",
     .put = put_requests},
    {"weir_listener_connections", "gauge", "front",
     "Connections of a listener that are open, those that are being refused included.",
     .put = put_open},
    {"weir_listener_connections_max", "gauge", "front",
     "Connections of a listener that may be open.", .put = put_max},
    {"weir_listener_connections_refused_total", "counter", "front",
     "Connections refused because the listener had too many.", POOL(refused)},
    {"weir_listener_accepts_paused_total", "counter", "front",
     "Times that the system had no file left for a connection.", POOL(paused)},
    {"weir_auth_failures_total", "counter", "front,result",
     "Passwords and tokens that were not accepted.", .put = put_guesses},
    {"weir_listener_connections_limited_total", "counter", "front,reason",
     "Connections refused because their address or prefix had too many.", .put = put_limited},
    {.name = NULL},
};

/* --- Over all workers ------------------------------------------------------------------------- */

struct workers {
    uint64_t connections, connections_max, accepted, refused, timeouts, protocol_errors, tls_errors;
    uint64_t turns[WEIR_TURN_BUCKETS + 1], turn_ns, decisions;
};
#define WORKERS(member) .at = offsetof(struct workers, member)

static void add_worker(struct workers *sum, const struct weir_worker_counters *counters)
{
    sum->connections += weir_counted(&counters->connections);
    sum->accepted += weir_counted(&counters->accepted);
    sum->refused += weir_counted(&counters->refused);
    sum->timeouts += weir_counted(&counters->timeouts);
    sum->protocol_errors += weir_counted(&counters->protocol_errors);
    sum->tls_errors += weir_counted(&counters->tls_errors);
    for (unsigned i = 0; i <= WEIR_TURN_BUCKETS; i++)
        sum->turns[i] += weir_counted(&counters->turn_buckets[i]);
    sum->turn_ns += weir_counted(&counters->turn_ns);
    sum->decisions += weir_counted(&counters->decisions);
}

static bool read_workers(struct weir_daemon *daemon, void *read)
{
    struct workers *sum = read;
    for (unsigned i = 0; i < daemon->worker_count; i++)
        add_worker(sum, &daemon->workers[i]->counters);
    sum->connections_max = weir_daemon_connections_max(daemon);
    return true;
}

static void put_turns(struct weir_metrics *metrics, const struct weir_metric *metric,
                      const void *numbers)
{
    const struct workers *workers = numbers;
    uint64_t below = 0;
    for (unsigned i = 0; i < WEIR_TURN_BUCKETS; i++) {
        below += workers->turns[i];
        weir_metrics_put(metrics, "%s_bucket{le=\"0.%06u\"} %" PRIu64 "\n", metric->name,
                         weir_turn_bounds_us[i], below);
    }
    below += workers->turns[WEIR_TURN_BUCKETS];
    weir_metrics_put(metrics, "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n", metric->name, below);
    weir_metrics_put(metrics, "%s_sum %" PRIu64 ".%09" PRIu64 "\n", metric->name,
                     workers->turn_ns / 1000000000, workers->turn_ns % 1000000000);
    weir_metrics_put(metrics, "%s_count %" PRIu64 "\n", metric->name, below);
}

static const struct weir_metric worker_rows[] = {
    {"weir_connections", "gauge", NULL, "Connections that are open.", WORKERS(connections)},
    {"weir_connections_max", "gauge", NULL, "Connections that may be open.",
     WORKERS(connections_max)},
    {"weir_connections_accepted_total", "counter", NULL, "Connections accepted.",
     WORKERS(accepted)},
    {"weir_connections_refused_total", "counter", NULL,
     "Connections answered 503 because too many were open.", WORKERS(refused)},
    {"weir_timeouts_total", "counter", NULL,
     "Connections cut because the client was too slow to send or to read.", WORKERS(timeouts)},
    {"weir_protocol_errors_total", "counter", NULL,
     "Requests and PROXY headers that were malformed.", WORKERS(protocol_errors)},
    {"weir_tls_errors_total", "counter", NULL, "TLS sessions that failed, handshakes most of all.",
     WORKERS(tls_errors)},
    {"weir_turn_seconds", "histogram", NULL,
     "Time to decide and answer all that one turn of a worker's loop has read.", .put = put_turns},
    {"weir_requests_decided_total", "counter", NULL, "Requests decided, each by all its limits.",
     WORKERS(decisions)},
    {.name = NULL},
};

/* --- Failures --------------------------------------------------------------------------------- */

struct failures {
    uint64_t all, late, open, closed, local, exhausted;
};
#define FAILURES(member) .at = offsetof(struct failures, member)

static bool read_failures(struct weir_daemon *daemon, void *read)
{
    struct failures *sum = read;
    for (unsigned i = 0; i < daemon->worker_count; i++) {
        const struct weir_engine_failures *failures =
            weir_engine_failures(daemon->workers[i]->engine);
        uint64_t late = weir_counted(&failures->late);
        sum->all += late + weir_counted(&failures->failed);
        sum->late += late;
        sum->open += weir_counted(&failures->open);
        sum->closed += weir_counted(&failures->closed);
        sum->local += weir_counted(&failures->local);
        sum->exhausted += weir_counted(&failures->exhausted);
    }
    return true;
}

static void put_fallbacks(struct weir_metrics *metrics, const struct weir_metric *metric,
                          const void *numbers)
{
    const struct failures *failures = numbers;
    weir_metrics_value(metrics, metric, failures->open, "open");
    weir_metrics_value(metrics, metric, failures->closed, "closed");
    weir_metrics_value(metrics, metric, failures->local, "local");
}

static const struct weir_metric failure_rows[] = {
    {"weir_store_errors_total", "counter", NULL, "Decisions that the store did not make.",
     FAILURES(all)},
    {"weir_store_late_total", "counter", NULL, "Of those, past their deadline.", FAILURES(late)},
    {"weir_fallback_decisions_total", "counter", "source",
     "Decisions by on_store_error instead of the store.", .put = put_fallbacks},
    {"weir_decisions_exhausted_total", "counter", NULL, "Requests that found no free decision.",
     FAILURES(exhausted)},
    {.name = NULL},
};

/* --- JSON Web Tokens -------------------------------------------------------------------------- */

static bool reads_tokens(struct weir_daemon *daemon, void *read)
{
    return weir_rules_reads_tokens(daemon->rules);
}

static void put_tokens(struct weir_metrics *metrics, const struct weir_metric *metric,
                       const void *numbers)
{
    const struct weir_daemon *daemon = metrics->daemon;
    for (int result = 0; result < WEIR_TOKEN_RESULTS; result++) {
        uint64_t total = 0;
        for (unsigned i = 0; i < daemon->worker_count; i++)
            total += weir_counted(&weir_engine_tokens(daemon->workers[i]->engine)->results[result]);
        weir_metrics_value(metrics, metric, total, weir_token_names[result]);
    }
}

static const struct weir_metric token_rows[] = {
    {"weir_jwt_total", "counter", "result", "JSON Web Tokens by what became of them.",
     .put = put_tokens},
    {.name = NULL},
};

/* --- The table -------------------------------------------------------------------------------- */

struct table {
    struct weir_table_stats stats;
    uint64_t stopped;
};
#define TABLE(member) .at = offsetof(struct table, stats.member)

static bool read_table(struct weir_daemon *daemon, void *read)
{
    struct table *table = read;
    weir_table_stats(daemon->table, weir_worker_time(daemon->admin), &table->stats);
    table->stopped = weir_table_stopped(daemon->table) != 0;
    return true;
}

static const struct weir_metric table_rows[] = {
    {"weir_table_bytes", "gauge", NULL, "Size of the state region.", TABLE(bytes)},
    {"weir_table_slots", "gauge", NULL, "Keys that the region has slots for.", TABLE(slots)},
    {"weir_table_slots_used", "gauge", NULL, "Slots in use, some by states that are fresh again.",
     TABLE(slots_used)},
    {"weir_table_keys", "gauge", NULL, "Keys with something used; sampled where there are many.",
     TABLE(keys)},
    {"weir_table_span_bytes", "gauge", NULL, "Room for logs, segments and leases.",
     TABLE(span_bytes)},
    {"weir_table_span_bytes_used", "gauge", NULL, "Of that, in use.", TABLE(span_bytes_used)},
    {"weir_table_params", "gauge", NULL, "Different limits the region knows.", TABLE(params)},
    {"weir_table_params_max", "gauge", NULL, "Different limits the region has room for.",
     TABLE(params_max)},
    {"weir_table_owners", "gauge", NULL, "Threads attached to the region, of all processes.",
     TABLE(owners)},
    {"weir_table_inserts_total", "counter", NULL, "Keys that got a slot.", TABLE(inserts)},
    {"weir_table_evictions_total", "counter", NULL,
     "Slots taken from keys that had something used but were not being denied.", TABLE(evictions)},
    {"weir_table_overflows_total", "counter", NULL,
     "Decisions on a state that keys share because the table is full.", TABLE(overflows)},
    {"weir_table_reclaimed_total", "counter", NULL,
     "Slots reused after their state was fresh again.", TABLE(reclaimed)},
    {"weir_table_recoveries_total", "counter", NULL, "Threads that died and were cleaned up after.",
     TABLE(recoveries)},
    {"weir_table_lock_waits_total", "counter", NULL, "Locks that were not free at once.",
     TABLE(lock_waits)},
    {"weir_table_locks_given_up_total", "counter", NULL,
     "Lock attempts abandoned because a process sharing the state file was stopped.",
     TABLE(given_up)},
    {"weir_table_neighbour_stopped", "gauge", NULL,
     "1 while a process that shares the state file is stopped with a lock of it.",
     .at = offsetof(struct table, stopped)},
    {.name = NULL},
};

const struct weir_metric_table weir_server_metrics[] = {
    {process_rows, read_process, sizeof(struct process)},
    {listener_rows, NULL, 0},
    {worker_rows, read_workers, sizeof(struct workers)},
    {failure_rows, read_failures, sizeof(struct failures)},
    {token_rows, reads_tokens, 0},
    {table_rows, read_table, sizeof(struct table)},
    {.rows = NULL},
};

struct weir_buffer *weir_metrics_write(struct weir_daemon *daemon, struct weir_buffer *text)
{
    struct weir_metrics metrics = {.daemon = daemon, .text = text};
    weir_services_metrics(&metrics);
    return metrics.text;
}
