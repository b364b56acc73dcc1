/* SPDX-License-Identifier: Apache-2.0 */
/* see server.h */
#include "server/daemon/server.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weir/version.h>

#include "feature/envoy/server/daemon.h"
#include "feature/region/server/moving.h"
#include "server/daemon/addresses.h"
#include "server/daemon/clock.h"
#include "server/daemon/control.h"
#include "server/daemon/listening.h"
#include "server/daemon/reload/reload.h"
#include "server/daemon/reload/retired.h"
#include "server/daemon/services/services.h"
#include "server/daemon/state/state.h"
#include "server/daemon/state/state_guard.h"
#include "server/daemon/watch.h"
#include "server/daemon/work.h"
#include "server/net/daemon.h"
#include "server/net/seed.h"
#include "server/pressure/pressure_log.h"
#include "table/file/state_file.h"

/* A load that is only slow is waited for so long when weir stops. */
#define LOAD_PATIENCE_MS 1000

/* The admin worker decides only for its own state endpoint. */
#define ADMIN_DECISIONS (2 * WEIR_BATCH_MAX)

static int fail(const char *text)
{
    fprintf(stderr, "weir: %s\n", text);
    return 1;
}

static int open_worker(struct weir_daemon *daemon, struct weir_worker **worker, unsigned index,
                       uint32_t decisions, struct weir_reason *reason)
{
    struct weir_worker_options options = {
        .index = index,
        .log = &daemon->log,
        .rules = daemon->rules,
        .certificates = daemon->certificates,
        .decisions = decisions,
        .lease_seed = weir_seed_draw(index),
    };
    struct weir_reason why = {{0}};
    int err = weir_services_for_worker(daemon, &options, &why);
    err = err < 0 ? err : weir_worker_open(worker, &options, &why);
    if (err < 0)
        snprintf(reason->text, sizeof reason->text, "cannot start a worker: %.200s",
                 why.text[0] ? why.text : weir_error_text(err));
    return err;
}

static int open_workers(struct weir_daemon *daemon, struct weir_reason *reason)
{
    unsigned wanted = weir_listening_workers(daemon);
    daemon->workers = calloc(wanted, sizeof *daemon->workers);
    daemon->threads.list = calloc(wanted, sizeof *daemon->threads.list);
    if (!daemon->workers || !daemon->threads.list) {
        snprintf(reason->text, sizeof reason->text, "%s", weir_error_text(WEIR_ERR_MEMORY));
        return WEIR_ERR_MEMORY;
    }
    int err = 0;
    while (daemon->worker_count < wanted && err == 0) {
        unsigned i = daemon->worker_count;
        err = open_worker(daemon, &daemon->workers[i], i, 0, reason);
        daemon->worker_count += err == 0;
    }
    return err;
}

/* --- Threads ---------------------------------------------------------------------------------- */

struct thread_start {
    struct weir_daemon *daemon;
    struct weir_worker *worker;
};

static void thread_main(void *context)
{
    struct thread_start start = *(struct thread_start *)context;
    free(context);
    weir_worker_run(start.worker);
    atomic_fetch_sub(&start.daemon->threads.running, 1);
    uv_async_send(&start.daemon->threads.on_finished);
}

static int start_threads_masked(struct weir_daemon *daemon, struct weir_reason *reason)
{
    for (unsigned i = 0; i < daemon->worker_count; i++) {
        struct thread_start *start = malloc(sizeof *start);
        if (start) {
            *start = (struct thread_start){daemon, daemon->workers[i]};
            atomic_fetch_add(&daemon->threads.running, 1);
            if (uv_thread_create(&daemon->threads.list[i], thread_main, start) == 0) {
                daemon->threads.started++;
                continue;
            }
            atomic_fetch_sub(&daemon->threads.running, 1);
            free(start);
        }
        snprintf(reason->text, sizeof reason->text, "cannot start a thread");
        return WEIR_ERR_MEMORY;
    }
    return 0;
}

/* Signals are the main thread's business: no decision is interrupted by one. But a thread that
 * touches what a state file no longer has meets the handler itself (state_guard.h). */
static int start_threads(struct weir_daemon *daemon, struct weir_reason *reason)
{
    sigset_t all, old;
    weir_state_guard_fill(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old);
    int err = start_threads_masked(daemon, reason);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return err;
}

static void join_threads(struct weir_daemon *daemon)
{
    for (unsigned i = 0; i < daemon->threads.started; i++)
        weir_worker_stop(daemon->workers[i]);
    for (unsigned i = 0; i < daemon->threads.started; i++)
        uv_thread_join(&daemon->threads.list[i]);
}

/* --- Run -------------------------------------------------------------------------------------- */

/* Room for the connections of all listeners, those that are being refused included. */
static int open_peers(struct weir_daemon *daemon, struct weir_reason *reason)
{
    uint32_t connections = 0;
    for (unsigned i = 0; i < daemon->fronts.count; i++)
        connections += daemon->places[i].pool.max + daemon->places[i].pool.refusals;
    int err = weir_peers_open(&weir_daemon_net(daemon)->peers, weir_table_secret(daemon->table),
                              connections);
    if (err < 0)
        snprintf(reason->text, sizeof reason->text, "%s", weir_error_text(err));
    return err;
}

/* The services, and the workers with what they get of them. What fails leaves what is open. */
static int daemon_open_all(struct weir_daemon *daemon, struct weir_reason *reason)
{
    int err = weir_services_open(daemon, reason);
    if (err == 0)
        err = weir_listening_plan(daemon, reason);
    if (err == 0)
        err = open_peers(daemon, reason);
    if (err == 0)
        err = open_worker(daemon, &daemon->admin, WEIR_WORKERS_MAX, ADMIN_DECISIONS, reason);
    if (err == 0)
        err = weir_daemon_prepare(daemon, daemon->rules, reason);
    if (err == 0)
        err = open_workers(daemon, reason);
    if (err == 0)
        err = weir_services_start(daemon, reason);
    if (err == 0)
        err = weir_control_open(daemon, reason);
    return err < 0 ? err : weir_listening_open(daemon, reason);
}

static void daemon_close(struct weir_daemon *daemon)
{
    for (unsigned i = 0; i < daemon->worker_count; i++)
        weir_worker_close(daemon->workers[i]);
    if (daemon->admin)
        weir_worker_close(daemon->admin);
    weir_services_close(daemon);
    free(daemon->workers);
    free(daemon->threads.list);
}

static int daemon_open(struct weir_daemon *daemon, struct weir_reason *reason)
{
    int err = daemon_open_all(daemon, reason);
    if (err == 0)
        return 0;
    weir_services_stop(daemon);
    daemon_close(daemon);
    return err;
}

static void warn_of_reset(struct weir_daemon *daemon)
{
    const char *warning = weir_rules_reset_warning(daemon->rules);
    if (warning)
        weir_log_event(&daemon->log, WEIR_LOG_WARNING, "headers_not_chosen", "message", warning);
}

static void log_started(struct weir_daemon *daemon)
{
    weir_listening_log(daemon);
    const struct weir_server_options *options = &daemon->options;
    if (!options->config && !options->config_text && !options->envoy_config)
        weir_log_event(&daemon->log, WEIR_LOG_WARNING, "no_rules", "message",
                       "without --config only commands that carry their limit are limited; every "
                       "other check is allowed");
    if (options->config || options->config_text)
        warn_of_reset(daemon);
    weir_daemon_log_few_keys(daemon);
    struct weir_log_line line;
    weir_log_begin(&line, &daemon->log, WEIR_LOG_INFO, "started");
    weir_log_text(&line, "version", WEIR_VERSION);
    weir_log_number(&line, "workers", daemon->worker_count);
    weir_log_number(&line, "limits", weir_rules_count(daemon->rules));
    weir_log_number(&line, "spans_percent", weir_table_span_percent(daemon->table));
    weir_log_number(&line, "connections_max", (int64_t)weir_daemon_connections_max(daemon));
    weir_log_end(&line);
    weir_region_log_moving(&daemon->log, NULL, daemon->rules);
}

/* The background thread hangs in the kernel with all that it uses, so nothing is freed. */
__attribute__((noreturn)) static void leave(struct weir_daemon *daemon, int status)
{
    weir_log_event(&daemon->log, WEIR_LOG_WARNING, "load_abandoned", "reason",
                   "a file that was being read does not answer");
    weir_log_event(&daemon->log, WEIR_LOG_INFO, "stopped", NULL, NULL);
    weir_daemon_remove_sockets(daemon);
    _exit(status);
}

/* Runs the loops until all has stopped. */
static int daemon_serve(struct weir_daemon *daemon, struct weir_reason *reason)
{
    int err = start_threads(daemon, reason);
    if (err == 0) {
        log_started(daemon);
        weir_listening_leave(daemon);
        weir_supervisor_send(&daemon->supervisor, "READY=1\nSTATUS=weir " WEIR_VERSION " decides");
        if (daemon->reload.daemon) { /* it runs once more, by a reload */
            weir_daemon_reload_log(daemon, &daemon->reload);
            weir_daemon_reload_drop(daemon);
        }
        weir_daemon_want(daemon, 0); /* what came while the last run ended */
        weir_control_signals(SIG_UNBLOCK);
        weir_worker_run(daemon->admin);
        weir_control_signals(SIG_BLOCK);
    }
    join_threads(daemon);
    weir_services_stop(daemon);
    bool idle = weir_background_close(daemon->background, LOAD_PATIENCE_MS);
    daemon->background = NULL;
    if (!idle)
        leave(daemon, err < 0);
    return err;
}

static int daemon_run(struct weir_daemon *daemon)
{
    struct weir_reason reason = {{0}};
    int err = weir_background_open(&daemon->background);
    if (err < 0)
        return fail(weir_error_text(err));
    if (!daemon->rules && weir_daemon_load(daemon) < 0)
        return 1;
    err = daemon_open(daemon, &reason);
    if (err != 0)
        return fail(reason.text);
    if (!daemon->loads.started_wall_ns)
        daemon->loads.started_wall_ns = weir_clock_wall_ns();
    daemon->loads.last_wall_ns = weir_clock_wall_ns();
    err = daemon_serve(daemon, &reason);
    if (!daemon->next.wanted)
        weir_log_event(&daemon->log, WEIR_LOG_INFO, "stopped", NULL, NULL);
    daemon_close(daemon);
    if (!daemon->next.wanted) { /* else the next run begins with them */
        weir_daemon_remove_sockets(daemon);
        free(daemon->loads.problems);
    }
    return err < 0 ? fail(reason.text) : 0;
}

/* --- Once more -------------------------------------------------------------------------------- */

static void daemon_free(struct weir_daemon *daemon)
{
    weir_daemon_reload_drop(daemon);
    weir_daemon_watch_drop(daemon);
    weir_rules_unref(daemon->rules);
    weir_rules_unref(daemon->next.rules);
    weir_daemon_free_retired(daemon);
    weir_certificates_unref(daemon->certificates);
    weir_certificates_unref(daemon->next.certificates);
    weir_listening_drop(daemon);
    weir_supervisor_close(&daemon->supervisor);
    free(daemon);
}

static struct weir_daemon *daemon_new(void)
{
    struct weir_daemon *daemon = calloc(1, sizeof *daemon);
    if (daemon)
        weir_services_take(daemon);
    return daemon;
}

/* What the next run begins with: everything else is recreated. Frees the last one. NULL: no memory.
 */
static struct weir_daemon *daemon_renew(struct weir_daemon *last)
{
    struct weir_daemon *next = daemon_new();
    if (!next)
        return NULL;
    next->options = last->options;
    weir_log_init(&next->log, last->log.fd, last->log.format);
    next->rules = last->next.rules;
    next->certificates = last->next.certificates;
    next->certificate_watch = last->certificate_watch;
    last->next.rules = NULL;
    last->next.certificates = NULL;
    next->table = last->table;
    for (unsigned i = 0; i < last->fronts.count; i++) {
        next->places[i].kept = last->places[i].kept;
        last->places[i].kept.count = 0;
    }
    next->supervisor = last->supervisor;
    last->supervisor = (struct weir_supervisor){.notify = -1};
    next->loads.started_wall_ns = last->loads.started_wall_ns;
    next->work.wanted = last->work.wanted & WEIR_WANT_RELOAD;
    next->reload.daemon = next;
    next->reload.began_ns = last->next.began_ns;
    next->reload.err = weir_daemon_reopen_table(next, &next->reload.reason);
    next->loads.count = last->loads.count + (next->reload.err == 0);
    next->loads.failed = last->loads.failed + (next->reload.err < 0);
    next->loads.took_ns = weir_clock_boot_ns() - last->next.began_ns;
    daemon_free(last);
    return next;
}

int weir_server_check(struct weir_rules *rules, struct weir_reason *reason)
{
    struct weir_daemon *daemon = daemon_new();
    struct weir_certificates *certificates = NULL;
    reason->text[0] = 0;
    if (!daemon) {
        snprintf(reason->text, sizeof reason->text, "%s", weir_error_text(WEIR_ERR_MEMORY));
        return WEIR_ERR_MEMORY;
    }
    daemon->rules = rules;
    int err = weir_daemon_check(daemon, weir_rules_settings(rules), reason);
    if (err == 0)
        err = weir_listening_check(daemon, reason);
    if (err == 0)
        err = weir_certificates_load(&certificates, &daemon->fronts, weir_rules_settings(rules),
                                     reason);
    if (err == 0)
        err = weir_daemon_check_state(daemon, rules, reason);
    weir_certificates_unref(certificates);
    free(daemon);
    return err;
}

int weir_server_run(const struct weir_server_options *options)
{
    struct weir_daemon *daemon = daemon_new();
    if (!daemon)
        return fail(weir_error_text(WEIR_ERR_MEMORY));
    signal(SIGPIPE, SIG_IGN); /* a peer that is gone is an error of its write */
    signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is one, too: EFBIG, like a full disk */
    daemon->options = *options;
    weir_log_init(&daemon->log, STDERR_FILENO, options->log_format);
    daemon->log.least = options->log_level;
    weir_supervisor_open(&daemon->supervisor);
    for (;;) {
        weir_control_signals_begin();
        int status = daemon_run(daemon);
        if (!daemon->next.wanted) {
            (void)!weir_background_close(daemon->background, LOAD_PATIENCE_MS); /* no start: idle */
            daemon_free(daemon);
            return status;
        }
        struct weir_daemon *next = daemon_renew(daemon);
        if (!next)
            return fail(weir_error_text(WEIR_ERR_MEMORY)); /* with all that it holds */
        daemon = next;
    }
}
