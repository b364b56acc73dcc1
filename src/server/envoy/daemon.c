/* SPDX-License-Identifier: Apache-2.0 */
/* Envoy's service in the life of the daemon; see daemon/daemon.h */
#include "server/envoy/daemon.h"

#include <stdio.h>
#include <string.h>

#include "server/daemon/watch.h"
#include "server/daemon/work.h"
#include "server/envoy/shared.h"
#include "server/envoy/statsd.h"

/* `envoy:` of the rules, or what the command line says alone. */
static struct weir_envoy_settings settings_of(const struct weir_daemon *daemon,
                                              const struct weir_rules *rules)
{
    const struct weir_settings *all = weir_rules_settings(rules);
    struct weir_envoy_settings settings = all->envoy;
    if (!settings.folder && daemon->options.envoy_config) {
        settings.options.ignore_dot_files = true;
        settings.options.nodes = all->store.nodes;
        settings.options.leased = all->store.leased;
        settings.options.shared = all->store.redis.url;
    }
    if (daemon->options.envoy_config)
        settings.folder = daemon->options.envoy_config;
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
    weir_shared_store_totals(daemon->shared, &totals);
    return totals.reached && (!now || totals.up > 0);
}

static void first_run(struct weir_job *job)
{
    struct weir_watch *watch = (struct weir_watch *)(void *)job; /* its first member */
    weir_envoy_reading_read(&watch->envoy, watch->daemon->envoy);
}

static void first_done(struct weir_job *job)
{
    struct weir_watch *watch = (struct weir_watch *)(void *)job; /* its first member */
    weir_envoy_shared_take(watch->daemon->envoy, &watch->envoy);
}

/* Reads the folder before there is a loop; signals go on to end the process meanwhile. */
static void read_first(struct weir_daemon *daemon)
{
    struct weir_watch *watch = &daemon->watching;
    watch->job = (struct weir_job){.run = first_run, .done = first_done};
    watch->daemon = daemon;
    weir_envoy_reading_begin(&watch->envoy, daemon->envoy);
    weir_background_start(daemon->background, &watch->job);
    weir_background_wait(daemon->background);
    weir_daemon_watch_drop(daemon);
}

int weir_daemon_envoy_open(struct weir_daemon *daemon, struct weir_reason *reason)
{
    const struct weir_envoy_settings settings = settings_of(daemon, daemon->rules);
    int err = weir_quota_service_open(&daemon->quota);
    if (err < 0) {
        snprintf(reason->text, sizeof reason->text, "%s", weir_error_text(err));
        return err;
    }
    if (!settings.folder)
        return 0;
    const struct weir_envoy_shared_options options = {
        .log = &daemon->log,
        .limits = daemon->redis.limits,
        .prepare = prepare_limit,
        .prepare_context = daemon,
        .store_reached = daemon->shared ? store_reached : NULL,
        .store_context = daemon,
    };
    err = weir_envoy_shared_open(&daemon->envoy, &options);
    if (err < 0) {
        snprintf(reason->text, sizeof reason->text, "%s", weir_error_text(err));
        return err;
    }
    weir_envoy_shared_set(daemon->envoy, &settings, daemon->rules);
    /* With a folder that is wrong the original starts, too, and waits for a better one. */
    read_first(daemon);
    return 0;
}

static void on_watch(uv_timer_t *timer)
{
    weir_daemon_want(timer->data, WEIR_WANT_ENVOY_WATCH);
}

int weir_daemon_envoy_start(struct weir_daemon *daemon, struct weir_reason *reason)
{
    int err = 0;
    if (!daemon->envoy)
        return 0;
    uv_timer_init(daemon->admin->loop, &daemon->envoy_watch);
    daemon->envoy_watch.data = daemon;
    uv_timer_start(&daemon->envoy_watch, on_watch, WEIR_ENVOY_WATCH_MS, WEIR_ENVOY_WATCH_MS);
    if (daemon->envoy->settings.statsd_host)
        err = weir_envoy_statsd_open(&daemon->statsd, daemon->admin->loop, daemon->envoy);
    if (err < 0)
        snprintf(reason->text, sizeof reason->text, "%s", weir_error_text(err));
    return err;
}

void weir_daemon_envoy_read(const struct weir_daemon *daemon, const struct weir_rules *rules,
                            struct weir_envoy_reading *reading)
{
    memset(reading, 0, sizeof *reading);
    reading->settings = settings_of(daemon, rules);
    if (daemon->envoy && reading->settings.folder)
        weir_envoy_reading_read(reading, daemon->envoy);
}

void weir_daemon_envoy_take(struct weir_daemon *daemon, struct weir_rules *rules,
                            struct weir_envoy_reading *reading)
{
    if (!daemon->envoy != !reading->settings.folder)
        weir_log_event(&daemon->log, WEIR_LOG_WARNING, "restart_needed", "setting", "envoy");
    if (!daemon->envoy || !reading->settings.folder)
        return;
    weir_envoy_shared_set(daemon->envoy, &reading->settings, rules);
    weir_envoy_shared_take(daemon->envoy, reading);
}

void weir_daemon_envoy_stop(struct weir_daemon *daemon)
{
    weir_envoy_statsd_stop(daemon->statsd);
}

void weir_daemon_envoy_close(struct weir_daemon *daemon)
{
    weir_envoy_statsd_free(daemon->statsd);
    weir_envoy_shared_close(daemon->envoy);
    weir_quota_service_close(daemon->quota);
    daemon->quota = NULL;
    daemon->statsd = NULL;
    daemon->envoy = NULL;
}
