/* SPDX-License-Identifier: Apache-2.0 */
/* see daemon.h */
#include "feature/envoy/server/daemon.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "feature/envoy/rules/xds_section.h"
#include "feature/envoy/server/http.h"
#include "feature/envoy/server/metrics.h"
#include "feature/envoy/server/quota/metrics.h"
#include "feature/envoy/server/quota/service.h"
#include "feature/envoy/server/shared.h"
#include "feature/envoy/server/statsd.h"
#include "feature/envoy/server/xds/metrics.h"
#include "server/adhoc/daemon.h"
#include "server/admin/exposition.h"
#include "server/daemon/daemon.h"
#include "server/daemon/services/restart.h"
#include "server/daemon/watch.h"
#include "server/daemon/work.h"
#include "server/http/front.h"
#include "server/stores/daemon.h"
#include "server/stores/shared_store.h"

/* `envoy:` of the rules, or what the command line says alone. */
static struct weir_envoy_settings settings_of(const struct weir_daemon *daemon,
                                              const struct weir_rules *rules)
{
    const struct weir_settings *all = weir_rules_settings(rules);
    struct weir_envoy_settings settings = *all->envoy;
    if (!weir_envoy_configured(&settings) && daemon->options.envoy_config) {
        settings.options.ignore_dot_files = true;
        settings.options.nodes = all->store.nodes;
        settings.options.leased = all->store.leased;
        settings.options.shared = all->store.redis.url;
    }
    if (daemon->options.envoy_config) {
        settings.folder = daemon->options.envoy_config;
        settings.xds.server = NULL;
    }
    return settings;
}

static int prepare_limit(void *context, struct weir_limit *limit, struct weir_reason *reason)
{
    struct weir_daemon *daemon = context;
    return weir_store_prepare(daemon->admin->store, daemon->admin->local, limit, reason);
}

static bool store_reached(void *context, bool now)
{
    struct weir_daemon *daemon = context;
    struct weir_shared_totals totals;
    weir_shared_store_totals(weir_daemon_shared(daemon), &totals);
    return totals.reached && (!now || totals.up > 0);
}

static void first_run(struct weir_job *job)
{
    struct weir_watch *watch = (struct weir_watch *)(void *)job; /* its first member */
    struct weir_envoy_run *run = weir_daemon_envoy_run(watch->daemon);
    weir_envoy_reading_read(&run->reading, run->shared);
}

static void first_done(struct weir_job *job)
{
    struct weir_watch *watch = (struct weir_watch *)(void *)job; /* its first member */
    struct weir_envoy_run *run = weir_daemon_envoy_run(watch->daemon);
    weir_envoy_shared_take(run->shared, &run->reading);
}

/* Reads the folder before there is a loop; signals go on to end the process meanwhile. */
static void read_first(struct weir_daemon *daemon)
{
    struct weir_watch *watch = &daemon->watching;
    watch->job =
        (struct weir_job){.what = "reading Envoy's folder", .run = first_run, .done = first_done};
    watch->daemon = daemon;
    struct weir_envoy_run *run = weir_daemon_envoy_run(daemon);
    weir_envoy_reading_begin(&run->reading, run->shared);
    weir_background_start(daemon->background, &watch->job);
    weir_background_wait(daemon->background);
    weir_daemon_watch_drop(daemon);
}

/* Of the folder, or of none; with a folder that is wrong the original starts, too, and waits for a
 * better one. */
static int envoy_open_folder(struct weir_daemon *daemon, const struct weir_envoy_settings *settings)
{
    const struct weir_envoy_shared_options options = {
        .log = &daemon->log,
        .limits = weir_daemon_given_limits(daemon),
        .prepare = prepare_limit,
        .prepare_context = daemon,
        .store_reached = weir_daemon_shared(daemon) ? store_reached : NULL,
        .store_context = daemon,
    };
    struct weir_envoy_run *run = weir_daemon_envoy_run(daemon);
    int err = weir_envoy_configured(settings) ? weir_envoy_shared_open(&run->shared, &options) : 0;
    if (!run->shared)
        return err;
    weir_envoy_shared_set(run->shared, settings, daemon->rules);
    read_first(daemon);
    return 0;
}

static void on_watch(uv_timer_t *timer)
{
    weir_daemon_want(timer->data, WEIR_WANT_ENVOY_WATCH);
}

static void on_wake(uv_async_t *wake)
{
    weir_daemon_want(wake->data, WEIR_WANT_ENVOY_WATCH);
}

/* On the stream's thread. */
static void on_response(void *context)
{
    struct weir_envoy_run *run = context;
    uv_async_send(&run->wake);
}

/* Looks at the folder now and then, or when the control plane has sent something. */
static int start_watching(struct weir_daemon *daemon, struct weir_envoy_run *run)
{
    struct weir_envoy_shared *shared = run->shared;
    if (shared->settings.folder) {
        uv_timer_init(daemon->admin->loop, &run->watch);
        run->watch.data = daemon;
        uv_timer_start(&run->watch, on_watch, WEIR_ENVOY_WATCH_MS, WEIR_ENVOY_WATCH_MS);
        return 0;
    }
    if (uv_async_init(daemon->admin->loop, &run->wake, on_wake) < 0)
        return WEIR_ERR_IO;
    run->wake.data = daemon;
    return weir_xds_stream_open(&shared->xds, &shared->settings.xds, &daemon->log, on_response,
                                run);
}

static int envoy_start(struct weir_daemon *daemon, struct weir_reason *reason)
{
    const struct weir_envoy_settings settings = settings_of(daemon, daemon->rules);
    struct weir_envoy_run *run = calloc(1, sizeof *run);
    if (!run)
        return WEIR_ERR_MEMORY;
    weir_own_set(daemon, WEIR_OWN_ENVOY, run);
    int err = weir_quota_service_open(&run->quota);
    if (err == 0)
        err = envoy_open_folder(daemon, &settings);
    if (err < 0 || !run->shared)
        return err;
    err = start_watching(daemon, run);
    if (err == 0 && run->shared->settings.statsd_host)
        err = weir_envoy_statsd_open(&run->statsd, daemon->admin->loop, run->shared);
    return err;
}

/* Whether the configuration is to come from somewhere else than it does, which needs a restart: a
 * control plane in a folder's place, or another control plane. */
static bool moved(const struct weir_daemon *daemon, const struct weir_envoy_settings *settings)
{
    const struct weir_envoy_shared *shared = weir_daemon_envoy(daemon);
    if (!shared || !weir_envoy_configured(settings))
        return !shared != !weir_envoy_configured(settings);
    const char *is = shared->settings.xds.server, *wanted = settings->xds.server;
    return !is != !wanted || (is && strcmp(is, wanted) != 0);
}

/* Whether a stream to the same control plane is to be another one, which needs a restart, too. */
static bool changed(const struct weir_daemon *daemon, const struct weir_envoy_settings *settings)
{
    const struct weir_envoy_shared *shared = weir_daemon_envoy(daemon);
    return shared && shared->settings.xds.server && settings->xds.server &&
           weir_xds_settings_differ(&shared->settings.xds, &settings->xds);
}

/* Whether what is configured can be read by the new rules. */
static bool stays(const struct weir_daemon *daemon, const struct weir_envoy_settings *settings)
{
    return weir_daemon_envoy(daemon) && !moved(daemon, settings);
}

/* Its folder is read by the new rules; what is wrong there refuses no rules. */
static int envoy_check(struct weir_daemon *daemon, struct weir_rules *rules, void **read,
                       struct weir_reason *reason)
{
    struct weir_envoy_reading *reading = calloc(1, sizeof *reading);
    *read = reading;
    if (!reading)
        return WEIR_ERR_MEMORY;
    reading->settings = settings_of(daemon, rules);
    if (stays(daemon, &reading->settings))
        weir_envoy_reading_read(reading, weir_daemon_envoy(daemon));
    return 0;
}

static void envoy_drop(void *read)
{
    weir_envoy_reading_drop(read);
    free(read);
}

static void envoy_apply(struct weir_daemon *daemon, struct weir_rules *rules, void *read)
{
    struct weir_envoy_reading *reading = read;
    weir_restart_note(
        daemon, moved(daemon, &reading->settings) || changed(daemon, &reading->settings), "envoy");
    if (stays(daemon, &reading->settings)) {
        weir_envoy_shared_set(weir_daemon_envoy(daemon), &reading->settings, rules);
        weir_envoy_shared_take(weir_daemon_envoy(daemon), reading);
    }
    envoy_drop(reading);
}

/* Under the original's names. Its keys may hold what clients have sent, but only so many of them:
 * see stats.h. */
static void envoy_metrics(struct weir_metrics *metrics)
{
    struct weir_envoy_shared *envoy = weir_daemon_envoy(metrics->daemon);
    size_t size = 0;
    char *text = envoy ? weir_envoy_prometheus_text(envoy, &size) : NULL;
    if (text)
        weir_metrics_text(metrics, text, size);
    free(text);
}

static void envoy_drain(struct weir_daemon *daemon)
{
    if (weir_daemon_envoy(daemon))
        atomic_store(&weir_daemon_envoy(daemon)->stopping, true);
}

static void envoy_stop(struct weir_daemon *daemon)
{
    struct weir_envoy_run *run = weir_daemon_envoy_run(daemon);
    if (!run)
        return;
    weir_envoy_statsd_stop(run->statsd);
    if (run->shared) /* the background thread may be looking at it: it is closed with `shared` */
        weir_xds_stream_stop(run->shared->xds);
}

static void envoy_close(struct weir_daemon *daemon)
{
    struct weir_envoy_run *run = weir_daemon_envoy_run(daemon);
    if (!run)
        return;
    weir_envoy_statsd_free(run->statsd);
    weir_envoy_shared_close(run->shared);
    weir_quota_service_close(run->quota);
    weir_envoy_reading_drop(&run->reading);
    free(run);
    weir_own_set(daemon, WEIR_OWN_ENVOY, NULL);
}

static const struct weir_http_route *const envoy_routes[] = {
    weir_envoy_routes,
    NULL,
};

static const struct weir_front *const envoy_fronts[] = {&weir_envoy_prometheus_front, NULL};

static const struct weir_metric_table envoy_tables[] = {
    {weir_quota_rows, weir_quota_numbers_read, sizeof(struct weir_quota_numbers)},
    {weir_xds_rows, weir_xds_numbers_read, sizeof(struct weir_xds_numbers)},
    {.rows = NULL},
};

const struct weir_service weir_service_envoy = {
    .name = "envoy",
    .routes = envoy_routes,
    .fronts = envoy_fronts,
    .start = envoy_start,
    .check = envoy_check,
    .apply = envoy_apply,
    .drop = envoy_drop,
    .metrics = envoy_tables,
    .metrics_text = envoy_metrics,
    .drain = envoy_drain,
    .stop = envoy_stop,
    .close = envoy_close,
};
