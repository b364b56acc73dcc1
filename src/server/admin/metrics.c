/* SPDX-License-Identifier: Apache-2.0 */
/* All metrics, in their order: see docs/metrics.md. */
#include "server/admin/metrics.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "feature/challenge/server/metrics.h"
#include "feature/score/server/metrics.h"
#include "server/adhoc/daemon.h"
#include "server/admin/exposition.h"
#include "server/admin/limit_metrics.h"
#include "server/daemon/addresses.h"
#include "server/daemon/clock.h"
#include "server/daemon/services/services.h"
#include "server/grpc/front.h"
#include "server/http/http.h"
#include "server/resp/front.h"

static void seconds(struct weir_metrics *metrics, const char *name, const char *help, int64_t ns)
{
    uint64_t absolute = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;
    weir_metrics_head(metrics, name, "gauge", help);
    weir_metrics_put(metrics, "%s %s%" PRIu64 ".%09" PRIu64 "\n", name, ns < 0 ? "-" : "",
                     absolute / 1000000000, absolute % 1000000000);
}

/* --- Over all workers ------------------------------------------------------------------------- */

static uint64_t sum(struct weir_daemon *daemon, size_t offset)
{
    uint64_t total = 0;
    for (unsigned i = 0; i < daemon->worker_count; i++) {
        char *counters = (char *)&daemon->workers[i]->counters;
        total += weir_counted((_Atomic uint64_t *)(void *)(counters + offset));
    }
    return total;
}

#define SUM(daemon, field) sum(daemon, offsetof(struct weir_worker_counters, field))

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
static void put_listener_requests(struct weir_metrics *metrics, unsigned i)
{
    uint64_t totals[WEIR_HTTP_ROUTES_MAX + 1][WEIR_HTTP_STATUS_COUNT] = {0};
    const struct weir_listener *listener = listener_of(metrics->daemon, i, 0), *same;
    const struct weir_http *sample = listener->workspace;
    for (unsigned w = 0; (same = listener_of(metrics->daemon, i, w)); w++) {
        const struct weir_http *http = same->workspace;
        for (unsigned r = 0; r <= http->route_count; r++)
            for (unsigned s = 0; s < WEIR_HTTP_STATUS_COUNT; s++)
                totals[row_of_name(http, r)][s] += weir_counted(&http->requests[r][s]);
    }
    for (unsigned r = 0; r <= sample->route_count; r++)
        for (unsigned s = 0; s < WEIR_HTTP_STATUS_COUNT; s++)
            if (totals[r][s])
                weir_metrics_put(
                    metrics,
                    "weir_requests_total{front=\"%s\",route=\"%s\",code=\"%u\"} %" PRIu64 "\n",
                    listener->front->name,
                    r < sample->route_count ? sample->routes[r].name : "none",
                    weir_http_code((enum weir_http_status)s), totals[r][s]);
}

/* Of the listeners that speak HTTP. */
static void put_requests(struct weir_metrics *metrics)
{
    const struct weir_listener *listener;
    weir_metrics_head(metrics, "weir_requests_total", "counter", "HTTP requests answered.");
    for (unsigned i = 0; (listener = listener_at(metrics->daemon, i)); i++)
        if (listener->front->http)
            put_listener_requests(metrics, i);
}

static void put_commands(struct weir_metrics *metrics)
{
    struct weir_daemon *daemon = metrics->daemon;
    uint64_t commands = 0, errors = 0, unknown = 0;
    for (unsigned i = 0; i < daemon->worker_count; i++) {
        const struct weir_listener *listener;
        for (unsigned j = 0; (listener = weir_worker_listener(daemon->workers[i], j)); j++) {
            const struct weir_resp_workspace *redis = listener->workspace;
            if (listener->kind != WEIR_LISTENER_REDIS)
                continue;
            commands += weir_counted(&redis->commands);
            errors += weir_counted(&redis->errors);
            unknown += weir_counted(&redis->unknown_scripts);
        }
    }
    weir_metrics_number(metrics, "weir_adhoc_limits", "gauge",
                        "Distinct limits that requests and commands have given.",
                        weir_adhoc_limits_count(weir_daemon_given_limits(daemon)));
    if (!weir_daemon_listens(daemon, &weir_resp_front))
        return;
    weir_metrics_number(metrics, "weir_redis_commands_total", "counter",
                        "Commands of the Redis protocol.", commands);
    weir_metrics_number(metrics, "weir_redis_errors_total", "counter",
                        "Errors that commands were answered with.", errors);
    weir_metrics_number(metrics, "weir_redis_unknown_scripts_total", "counter",
                        "Calls of scripts that weir does not know, which failed.", unknown);
}

/* Calls by method and status; series that are zero are left out. */
static void put_calls(struct weir_metrics *metrics)
{
    struct weir_daemon *daemon = metrics->daemon;
    uint64_t totals[WEIR_GRPC_METHODS_MAX + 1][WEIR_GRPC_STATUSES] = {0};
    if (!weir_daemon_listens(daemon, &weir_grpc_front))
        return;
    for (unsigned i = 0; i < daemon->worker_count; i++) {
        const struct weir_listener *listener;
        for (unsigned j = 0; (listener = weir_worker_listener(daemon->workers[i], j)); j++) {
            const struct weir_grpc *grpc = listener->workspace;
            if (listener->kind != WEIR_LISTENER_GRPC)
                continue;
            for (unsigned m = 0; m <= WEIR_GRPC_METHODS_MAX; m++)
                for (unsigned s = 0; s < WEIR_GRPC_STATUSES; s++)
                    totals[m][s] += weir_counted(&grpc->calls[m][s]);
        }
    }
    weir_metrics_head(metrics, "weir_grpc_calls_total", "counter", "gRPC calls answered.");
    for (unsigned m = 0; m <= WEIR_GRPC_METHODS_MAX; m++) {
        const char *method = m < weir_grpc_method_count ? weir_grpc_methods[m].name : "none";
        for (unsigned s = 0; s < WEIR_GRPC_STATUSES; s++) {
            if (totals[m][s])
                weir_metrics_put(metrics,
                                 "weir_grpc_calls_total{method=\"%s\",code=\"%u\"} %" PRIu64 "\n",
                                 method, s, totals[m][s]);
        }
    }
}

/* One number of each listener's pool. */
static void put_pools(struct weir_metrics *metrics, const char *name, const char *type,
                      const char *help, uint64_t (*number)(const struct weir_connection_pool *))
{
    const struct weir_listener *listener;
    weir_metrics_head(metrics, name, type, help);
    for (unsigned i = 0; (listener = listener_at(metrics->daemon, i)); i++)
        weir_metrics_put(metrics, "%s{front=\"%s\"} %" PRIu64 "\n", name, listener->front->name,
                         number(listener->pool));
}

static uint64_t pool_max(const struct weir_connection_pool *pool)
{
    return pool->max;
}

static uint64_t pool_open(const struct weir_connection_pool *pool)
{
    return atomic_load_explicit(&pool->open, memory_order_relaxed);
}

static uint64_t pool_refused(const struct weir_connection_pool *pool)
{
    return atomic_load_explicit(&pool->refused, memory_order_relaxed);
}

static uint64_t pool_paused(const struct weir_connection_pool *pool)
{
    return atomic_load_explicit(&pool->paused, memory_order_relaxed);
}

/* Passwords and tokens: listener `i` of each worker is the same one. */
static void put_guesses(struct weir_metrics *metrics)
{
    struct weir_daemon *daemon = metrics->daemon;
    static const char name[] = "weir_auth_failures_total";
    const struct weir_listener *listener;
    weir_metrics_head(metrics, name, "counter", "Passwords and tokens that were not accepted.");
    for (unsigned i = 0; (listener = listener_at(daemon, i)); i++) {
        const struct weir_listener *same;
        uint64_t wrong = 0, refused = 0;
        for (unsigned w = 0; (same = listener_of(daemon, i, w)); w++) {
            wrong += weir_counted(&same->wrong_guesses);
            refused += weir_counted(&same->refused_guesses);
        }
        weir_metrics_put(metrics, "%s{front=\"%s\",result=\"wrong\"} %" PRIu64 "\n", name,
                         listener->front->name, wrong);
        weir_metrics_put(metrics, "%s{front=\"%s\",result=\"refused\"} %" PRIu64 "\n", name,
                         listener->front->name, refused);
    }
}

/* Refused by `server.connections`. */
static void put_limited(struct weir_metrics *metrics)
{
    static const char name[] = "weir_listener_connections_limited_total";
    static const char *const reasons[] = {
        [WEIR_PEER_ADDRESS] = "address", [WEIR_PEER_PREFIX] = "prefix", [WEIR_PEER_RATE] = "rate"};
    const struct weir_listener *listener;
    weir_metrics_head(metrics, name, "counter",
                      "Connections refused because their address or prefix had too many.");
    for (unsigned i = 0; (listener = listener_at(metrics->daemon, i)); i++)
        for (int j = WEIR_PEER_ADDRESS; j < WEIR_PEER_VERDICTS; j++)
            weir_metrics_put(
                metrics, "%s{front=\"%s\",reason=\"%s\"} %" PRIu64 "\n", name,
                listener->front->name, reasons[j],
                atomic_load_explicit(&listener->pool->limited[j], memory_order_relaxed));
}

static void put_connections(struct weir_metrics *metrics)
{
    struct weir_daemon *daemon = metrics->daemon;
    put_pools(metrics, "weir_listener_connections", "gauge",
              "Connections of a listener that are open, those that are being refused included.",
              pool_open);
    put_pools(metrics, "weir_listener_connections_max", "gauge",
              "Connections of a listener that may be open.", pool_max);
    put_pools(metrics, "weir_listener_connections_refused_total", "counter",
              "Connections refused because the listener had too many.", pool_refused);
    put_pools(metrics, "weir_listener_accepts_paused_total", "counter",
              "Times that the system had no file left for a connection.", pool_paused);
    weir_metrics_number(metrics, "weir_connections", "gauge", "Connections that are open.",
                        SUM(daemon, connections));
    weir_metrics_number(metrics, "weir_connections_max", "gauge", "Connections that may be open.",
                        weir_daemon_connections_max(daemon));
    weir_metrics_number(metrics, "weir_connections_accepted_total", "counter",
                        "Connections accepted.", SUM(daemon, accepted));
    weir_metrics_number(metrics, "weir_connections_refused_total", "counter",
                        "Connections answered 503 because too many were open.",
                        SUM(daemon, refused));
    weir_metrics_number(metrics, "weir_timeouts_total", "counter",
                        "Connections cut because the client was too slow to send or to read.",
                        SUM(daemon, timeouts));
    weir_metrics_number(metrics, "weir_protocol_errors_total", "counter",
                        "Requests and PROXY headers that were malformed.",
                        SUM(daemon, protocol_errors));
    weir_metrics_number(metrics, "weir_tls_errors_total", "counter",
                        "TLS sessions that failed, handshakes most of all.",
                        SUM(daemon, tls_errors));
}

static void put_turns(struct weir_metrics *metrics)
{
    struct weir_daemon *daemon = metrics->daemon;
    uint64_t below = 0;
    weir_metrics_head(metrics, "weir_turn_seconds", "histogram",
                      "Time to decide and answer all that one turn of a worker's loop has read.");
    for (unsigned i = 0; i < WEIR_TURN_BUCKETS; i++) {
        for (unsigned w = 0; w < daemon->worker_count; w++)
            below += weir_counted(&daemon->workers[w]->counters.turn_buckets[i]);
        weir_metrics_put(metrics, "weir_turn_seconds_bucket{le=\"0.%06u\"} %" PRIu64 "\n",
                         weir_turn_bounds_us[i], below);
    }
    for (unsigned w = 0; w < daemon->worker_count; w++)
        below += weir_counted(&daemon->workers[w]->counters.turn_buckets[WEIR_TURN_BUCKETS]);
    uint64_t ns = SUM(daemon, turn_ns);
    weir_metrics_put(metrics, "weir_turn_seconds_bucket{le=\"+Inf\"} %" PRIu64 "\n", below);
    weir_metrics_put(metrics, "weir_turn_seconds_sum %" PRIu64 ".%09" PRIu64 "\n", ns / 1000000000,
                     ns % 1000000000);
    weir_metrics_put(metrics, "weir_turn_seconds_count %" PRIu64 "\n", below);
    weir_metrics_number(metrics, "weir_requests_decided_total", "counter",
                        "Decisions made, each over all limits of one request.",
                        SUM(daemon, decisions));
}

static void put_table(struct weir_metrics *metrics)
{
    struct weir_daemon *daemon = metrics->daemon;
    struct weir_table_stats stats;
    weir_table_stats(daemon->table, weir_worker_time(daemon->admin), &stats);
    const struct {
        const char *name, *type, *help;
        uint64_t value;
    } lines[] = {
        {"weir_table_bytes", "gauge", "Size of the state region.", stats.bytes},
        {"weir_table_slots", "gauge", "Keys that the region has slots for.", stats.slots},
        {"weir_table_slots_used", "gauge", "Slots in use, some by states that are fresh again.",
         stats.slots_used},
        {"weir_table_keys", "gauge", "Keys with something used; sampled where there are many.",
         stats.keys},
        {"weir_table_span_bytes", "gauge", "Room for logs, segments and leases.", stats.span_bytes},
        {"weir_table_span_bytes_used", "gauge", "Of that, in use.", stats.span_bytes_used},
        {"weir_table_params", "gauge", "Different limits the region knows.", stats.params},
        {"weir_table_params_max", "gauge", "Different limits the region has room for.",
         stats.params_max},
        {"weir_table_owners", "gauge", "Threads attached to the region, of all processes.",
         stats.owners},
        {"weir_table_inserts_total", "counter", "Keys that got a slot.", stats.inserts},
        {"weir_table_evictions_total", "counter",
         "Slots taken from keys that had something used but were not being denied.",
         stats.evictions},
        {"weir_table_overflows_total", "counter",
         "Decisions on a state that keys share because the table is full.", stats.overflows},
        {"weir_table_reclaimed_total", "counter", "Slots reused after their state was fresh again.",
         stats.reclaimed},
        {"weir_table_recoveries_total", "counter", "Threads that died and were cleaned up after.",
         stats.recoveries},
        {"weir_table_lock_waits_total", "counter", "Locks that were not free at once.",
         stats.lock_waits},
        {"weir_table_locks_given_up_total", "counter",
         "Lock attempts abandoned because a process sharing the state file was stopped.",
         stats.given_up},
        {"weir_table_neighbour_stopped", "gauge",
         "1 while a process that shares the state file is stopped with a lock of it.",
         weir_table_stopped(daemon->table) != 0},
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        weir_metrics_number(metrics, lines[i].name, lines[i].type, lines[i].help, lines[i].value);
}

static void put_failures(struct weir_metrics *metrics)
{
    struct weir_daemon *daemon = metrics->daemon;
    uint64_t late = 0, failed = 0, open = 0, closed = 0, local = 0, exhausted = 0;
    for (unsigned i = 0; i < daemon->worker_count; i++) {
        const struct weir_engine_failures *failures =
            weir_engine_failures(daemon->workers[i]->engine);
        late += weir_counted(&failures->late);
        failed += weir_counted(&failures->failed);
        open += weir_counted(&failures->open);
        closed += weir_counted(&failures->closed);
        local += weir_counted(&failures->local);
        exhausted += weir_counted(&failures->exhausted);
    }
    weir_metrics_number(metrics, "weir_store_errors_total", "counter",
                        "Decisions that the store did not make.", late + failed);
    weir_metrics_number(metrics, "weir_store_late_total", "counter",
                        "Of those, past their deadline.", late);
    weir_metrics_head(metrics, "weir_fallback_decisions_total", "counter",
                      "Decisions by on_store_error instead of the store.");
    weir_metrics_put(metrics, "weir_fallback_decisions_total{source=\"open\"} %" PRIu64 "\n", open);
    weir_metrics_put(metrics, "weir_fallback_decisions_total{source=\"closed\"} %" PRIu64 "\n",
                     closed);
    weir_metrics_put(metrics, "weir_fallback_decisions_total{source=\"local\"} %" PRIu64 "\n",
                     local);
    weir_metrics_number(metrics, "weir_decisions_exhausted_total", "counter",
                        "Requests that found no free decision.", exhausted);
}

/* What became of JSON Web Tokens. */
static void put_tokens(struct weir_metrics *metrics)
{
    struct weir_daemon *daemon = metrics->daemon;
    weir_metrics_head(metrics, "weir_jwt_total", "counter",
                      "JSON Web Tokens by what became of them.");
    for (int result = 0; result < WEIR_TOKEN_RESULTS; result++) {
        uint64_t total = 0;
        for (unsigned i = 0; i < daemon->worker_count; i++)
            total += weir_counted(&weir_engine_tokens(daemon->workers[i]->engine)->results[result]);
        weir_metrics_put(metrics, "weir_jwt_total{result=\"%s\"} %" PRIu64 "\n",
                         weir_token_names[result], total);
    }
}

struct weir_buffer *weir_metrics_write(struct weir_daemon *daemon, struct weir_buffer *text)
{
    struct weir_metrics metrics = {daemon, text};
    weir_metrics_head(&metrics, "weir_build_info", "gauge", "What runs.");
    weir_metrics_put(&metrics, "weir_build_info{version=\"" WEIR_VERSION "\"} 1\n");
    seconds(&metrics, "weir_start_time_seconds", "When it started, since the epoch.",
            (int64_t)daemon->loads.started_wall_ns);
    weir_metrics_number(&metrics, "weir_workers", "gauge", "Threads that decide.",
                        daemon->worker_count);
    weir_metrics_number(&metrics, "weir_limits", "gauge", "Limits in the rules.",
                        weir_rules_count(daemon->rules));
    weir_metrics_number(&metrics, "weir_rules_deprecated", "gauge",
                        "Things in the rules file that a later version refuses.",
                        weir_rules_deprecated(daemon->rules));
    weir_metrics_head(&metrics, "weir_reloads_total", "counter",
                      "Times the rules file was read again.");
    weir_metrics_put(&metrics, "weir_reloads_total{result=\"ok\"} %" PRIu64 "\n",
                     daemon->loads.count);
    weir_metrics_put(&metrics, "weir_reloads_total{result=\"failed\"} %" PRIu64 "\n",
                     daemon->loads.failed);
    weir_metrics_number(&metrics, "weir_state_file_lost", "gauge",
                        "1: the path of the state file no longer names the file in use.",
                        daemon->file.state == WEIR_TABLE_FILE_GONE ||
                            daemon->file.state == WEIR_TABLE_FILE_OTHER);
    weir_metrics_number(&metrics, "weir_reload_running", "gauge",
                        "1: the rules file is being read again.", daemon->reload.daemon ? 1 : 0);
    seconds(&metrics, "weir_reload_duration_seconds",
            "How long the last reload took, a failed one too.", (int64_t)daemon->loads.took_ns);
    seconds(&metrics, "weir_rules_loaded_seconds",
            "When the rules in use were read, since the epoch.",
            (int64_t)daemon->loads.last_wall_ns);
    seconds(&metrics, "weir_clock_offset_seconds",
            "Wall clock minus the time that decisions are made by.", daemon->drift.offset_ns);
    weir_metrics_number(&metrics, "weir_log_lines_dropped_total", "counter",
                        "Log lines left out because there were too many a second.",
                        weir_counted(&daemon->log.dropped_total));
    weir_metrics_of_limits(&metrics);
    weir_services_metrics(&metrics);
    weir_metrics_of_score(&metrics);
    put_requests(&metrics);
    put_calls(&metrics);
    put_commands(&metrics);
    put_connections(&metrics);
    put_turns(&metrics);
    put_failures(&metrics);
    put_guesses(&metrics);
    put_limited(&metrics);
    if (weir_rules_reads_tokens(daemon->rules))
        put_tokens(&metrics);
    put_table(&metrics);
    return metrics.text;
}
