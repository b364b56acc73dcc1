/* SPDX-License-Identifier: Apache-2.0 */
/* The control loop: signals, the watch on the rules file, the clock. See daemon.h. */
#include "server/daemon/control.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "feature/envoy/server/shared.h"
#include "server/daemon/clock.h"
#include "server/daemon/draining.h"
#include "server/daemon/reload/reload.h"
#include "server/daemon/services/services.h"
#include "server/daemon/watch.h"
#include "server/daemon/work.h"

#define CLOCK_CHECK_MS 1000
/* What the wall clock may differ by before it is worth a line. */
#define CLOCK_OFFSET_MAX_NS 1000000000
/* timeout(1), and Ctrl-C under a supervisor that passes signals on, send one wish to stop twice in
 * a row; somebody who has lost patience takes longer. */
#define STOP_REPEATED_MS 500
/* Editors and deployment tools write a file in several steps; it is read when they are done. */
#define WATCH_SETTLE_MS 100

/* --- Before there is a loop ------------------------------------------------------------------- */

void weir_control_signals(int how)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    pthread_sigmask(how, &set, NULL);
}

/* The first process of a container is not ended by a signal that it has no handler for. */
static void on_early_stop(int number)
{
    static const char text[] = "weir: stopped by a signal before it served\n";
    (void)number;
    (void)!write(STDERR_FILENO, text, sizeof text - 1);
    _exit(0);
}

void weir_control_signals_begin(void)
{
    const struct sigaction stop = {.sa_handler = on_early_stop};
    sigset_t stops;
    sigaction(SIGTERM, &stop, NULL);
    sigaction(SIGINT, &stop, NULL);
    weir_control_signals(SIG_BLOCK);
    sigemptyset(&stops);
    sigaddset(&stops, SIGTERM);
    sigaddset(&stops, SIGINT);
    pthread_sigmask(SIG_UNBLOCK, &stops, NULL);
}

/* --- Shutdown --------------------------------------------------------------------------------- */

static void control_on_stop(uv_signal_t *handle, int number)
{
    struct weir_daemon *daemon = handle->data;
    if (daemon->stopping && !daemon->next.wanted) {
        uint64_t left_ms = uv_timer_get_due_in(&daemon->control.grace);
        if (left_ms + STOP_REPEATED_MS > WEIR_SHUTDOWN_MS)
            return;
        weir_log_event(&daemon->log, WEIR_LOG_WARNING, "stopping_hard", "reason",
                       "a second signal");
        weir_daemon_stop_all(daemon);
        return;
    }
    weir_log_event(&daemon->log, WEIR_LOG_INFO, "stopping", "signal",
                   number == SIGTERM ? "SIGTERM" : "SIGINT");
    daemon->next.wanted = false;
    weir_daemon_drain(daemon);
}

/* The admin listener stays until the last worker is done: it says that the server is stopping. */
static void control_on_finished(uv_async_t *handle)
{
    struct weir_daemon *daemon = handle->data;
    if (atomic_load(&daemon->threads.running) == 0)
        weir_worker_drain(daemon->admin);
}

/* --- Reload ----------------------------------------------------------------------------------- */

/* One job at a time, from the most urgent. */
static void control_begin_work(struct weir_daemon *daemon, unsigned wanted)
{
    if (wanted & WEIR_WANT_RELOAD)
        weir_daemon_reload_start(daemon);
    else
        weir_daemon_watch_start(daemon, wanted);
}

static void control_on_hangup(uv_signal_t *handle, int number)
{
    struct weir_daemon *daemon = handle->data;
    (void)number;
    weir_services_reopen(daemon);
    weir_daemon_want(daemon, WEIR_WANT_RELOAD);
}

static void control_on_settled(uv_timer_t *timer)
{
    weir_daemon_want(timer->data, WEIR_WANT_RELOAD);
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool name_ends(const char *name, const char *end)
{
    size_t size = strlen(name), end_size = strlen(end);
    return size >= end_size && !strcmp(name + size - end_size, end);
}

/* Something in the folder of the rules file has changed: the file itself, a keys file or the list
 * of peers beside it, or the link "..data" by which Kubernetes swaps the files of a ConfigMap. */
static void control_on_change(uv_fs_event_t *handle, const char *name, int events, int status)
{
    struct weir_daemon *daemon = handle->data;
    (void)events;
    if (status < 0 || !name)
        return;
    const char *peers = weir_rules_settings(daemon->rules)->sticky.file;
    if ((peers && !strcmp(name, last_part(peers))) ||
        !strcmp(name, last_part(daemon->options.config)) || !strcmp(name, "..data") ||
        name_ends(name, ".yaml") || name_ends(name, ".yml"))
        uv_timer_start(&daemon->control.settle, control_on_settled, WATCH_SETTLE_MS, 0);
}

/* --- Neighbours on the state file --------------------------------------------------------------
 */

/* Logs that a process on the same state file is stopped, and that it continues. */
static void control_watch_neighbours(struct weir_daemon *daemon)
{
    uint32_t stopped = weir_table_stopped(daemon->table);
    if (stopped == daemon->file.stopped)
        return;
    struct weir_log_line line;
    weir_log_begin(&line, &daemon->log, stopped ? WEIR_LOG_ERROR : WEIR_LOG_INFO,
                   stopped ? "neighbour_stopped" : "neighbour_resumed");
    weir_log_number(&line, "pid", stopped ? stopped : daemon->file.stopped);
    if (stopped)
        weir_log_text(&line, "reason",
                      "it keeps a part of the state file locked, of which on_store_error decides "
                      "until it continues or ends");
    weir_log_end(&line);
    daemon->file.stopped = stopped;
}

/* --- Clock ------------------------------------------------------------------------------------ */

/* A sign of life once every worker has had a turn since the last one. */
static void control_feed_watchdog(struct weir_daemon *daemon)
{
    if (!daemon->supervisor.watchdog)
        return;
    for (unsigned i = 0; i < daemon->worker_count; i++)
        if (!weir_worker_alive(daemon->workers[i], false))
            return;
    for (unsigned i = 0; i < daemon->worker_count; i++)
        (void)weir_worker_alive(daemon->workers[i], true);
    weir_supervisor_send(&daemon->supervisor, "WATCHDOG=1");
}

static void control_on_clock(uv_timer_t *timer)
{
    struct weir_daemon *daemon = timer->data;
    control_feed_watchdog(daemon);
    uint64_t now_ns = weir_worker_time(daemon->admin);
    weir_daemon_want(daemon, WEIR_WANT_WATCH);
    weir_daemon_reload_tick(daemon);
    weir_daemon_work_tick(daemon, weir_clock_boot_ns());
    control_watch_neighbours(daemon);
    weir_services_tick(daemon, now_ns);
    now_ns = weir_engine_store_time(daemon->admin->engine, now_ns);
    daemon->drift.offset_ns = (int64_t)(weir_clock_wall_ns() - now_ns);
    bool off = llabs(daemon->drift.offset_ns) > CLOCK_OFFSET_MAX_NS;
    if (off == daemon->drift.logged)
        return;
    daemon->drift.logged = off;
    struct weir_log_line line;
    weir_log_begin(&line, &daemon->log, off ? WEIR_LOG_WARNING : WEIR_LOG_INFO,
                   off ? "wall_clock_differs" : "wall_clock_agrees");
    weir_log_number(&line, "offset_ms", daemon->drift.offset_ns / 1000000);
    weir_log_end(&line);
}

/* --- Open ------------------------------------------------------------------------------------- */

static int control_open_watch(struct weir_daemon *daemon)
{
    const char *config = daemon->options.config;
    const char *name = last_part(config);
    char folder[4096] = ".";
    if (name - config >= (long)sizeof folder)
        return UV_ENAMETOOLONG;
    if (name != config)
        snprintf(folder, sizeof folder, "%.*s", (int)(name - config), config);
    return uv_fs_event_start(&daemon->control.watch, control_on_change, folder, 0);
}

int weir_control_open(struct weir_daemon *daemon, struct weir_reason *reason)
{
    uv_loop_t *loop = daemon->admin->loop;
    daemon->work.begin = control_begin_work;
    int err = uv_signal_init(loop, &daemon->control.on_hangup);
    err = err < 0 ? err : uv_signal_init(loop, &daemon->control.on_terminate);
    err = err < 0 ? err : uv_signal_init(loop, &daemon->control.on_interrupt);
    err = err < 0 ? err : uv_async_init(loop, &daemon->threads.on_finished, control_on_finished);
    err = err < 0 ? err : uv_timer_init(loop, &daemon->control.clock);
    err = err < 0 ? err : uv_timer_init(loop, &daemon->control.grace);
    err = err < 0 ? err : uv_timer_init(loop, &daemon->control.settle);
    err = err < 0 ? err : uv_fs_event_init(loop, &daemon->control.watch);
    daemon->control.on_hangup.data = daemon->control.on_terminate.data =
        daemon->control.on_interrupt.data = daemon;
    daemon->threads.on_finished.data = daemon->control.clock.data = daemon->control.grace.data =
        daemon;
    daemon->control.settle.data = daemon->control.watch.data = daemon;
    err = err < 0 ? err : uv_signal_start(&daemon->control.on_hangup, control_on_hangup, SIGHUP);
    err = err < 0 ? err : uv_signal_start(&daemon->control.on_terminate, control_on_stop, SIGTERM);
    err = err < 0 ? err : uv_signal_start(&daemon->control.on_interrupt, control_on_stop, SIGINT);
    err =
        err < 0 ? err : uv_timer_start(&daemon->control.clock, control_on_clock, 0, CLOCK_CHECK_MS);
    if (err == 0 && weir_background_join_loop(daemon->background, loop) < 0)
        err = UV_EMFILE;
    if (err == 0 && daemon->options.watch)
        err = control_open_watch(daemon);
    if (err == 0)
        return 0;
    snprintf(reason->text, sizeof reason->text, "cannot watch signals and files: %s",
             uv_strerror(err));
    return WEIR_ERR_IO;
}
