/* SPDX-License-Identifier: Apache-2.0 */
/* Looking at files that are used while the daemon runs: certificates, Envoy's folder, the state
 * file. See daemon.h.
 *
 * All of it on the background thread, since a look at a file may hang as long as reading it.
 */
#include "server/daemon/watch.h"

#include <string.h>
#include <unistd.h>

#include "feature/envoy/server/daemon.h"
#include "server/daemon/addresses.h"
#include "server/daemon/clock.h"
#include "server/daemon/reload/retired.h"
#include "server/daemon/state/state_guard.h"
#include "server/daemon/work.h"

/* What keeps on being so is logged again after so long. */
#define STATE_AGAIN_NS (UINT64_C(60) * 1000000000)

static void log_state(struct weir_daemon *daemon, enum weir_log_level level, const char *event,
                      const char *reason)
{
    struct weir_log_line line;
    weir_log_begin(&line, &daemon->log, level, event);
    weir_log_text(&line, "file", weir_rules_settings(daemon->rules)->state_file);
    if (reason)
        weir_log_text(&line, "reason", reason);
    weir_log_end(&line);
}

/* Nothing that is decided from now on could be trusted, nor that anything of the region ends. */
__attribute__((noreturn)) static void state_end(struct weir_daemon *daemon,
                                                enum weir_table_file state)
{
    weir_state_guard_tell(state);
    weir_daemon_remove_sockets(daemon);
    _exit(WEIR_STATE_EXIT);
}

void weir_daemon_state_seen(struct weir_daemon *daemon, enum weir_table_file state)
{
    uint64_t now_ns = weir_clock_boot_ns();
    bool same = state == daemon->file.state;
    daemon->file.state = state;
    if (state == WEIR_TABLE_FILE_CUT || state == WEIR_TABLE_FILE_OVERWRITTEN)
        state_end(daemon, state);
    if (state == WEIR_TABLE_FILE_OURS) {
        if (!same)
            log_state(daemon, WEIR_LOG_INFO, "state_file_found", NULL);
        daemon->file.logged_ns = 0;
        return;
    }
    if (same && now_ns < daemon->file.logged_ns + STATE_AGAIN_NS)
        return;
    daemon->file.logged_ns = now_ns;
    log_state(daemon, WEIR_LOG_ERROR, "state_file_lost",
              state == WEIR_TABLE_FILE_GONE
                  ? "the file is gone: another process would begin a new one and count apart; "
                    "reload (SIGHUP) to write it again"
                  : "another file has its name: processes that use that one count apart; reload "
                    "(SIGHUP) to use it too");
}

void weir_daemon_set_certificates(struct weir_daemon *daemon,
                                  struct weir_certificates *certificates)
{
    for (unsigned i = 0; i < daemon->worker_count; i++)
        weir_worker_set_certificates(daemon->workers[i], certificates);
    weir_worker_set_certificates(daemon->admin, certificates);
    weir_certificates_unref(daemon->certificates);
    daemon->certificates = certificates;
}

static void watch_run(struct weir_job *job)
{
    struct weir_watch *watch = (struct weir_watch *)(void *)job; /* its first member */
    const struct weir_settings *settings = weir_rules_settings(watch->rules);
    const struct weir_fronts *fronts = &watch->daemon->fronts;
    struct weir_envoy_run *run = weir_daemon_envoy_run(watch->daemon);
    weir_daemon_forget_rules(watch->daemon);
    if ((watch->wanted & WEIR_WANT_WATCH) &&
        weir_certificate_watch_due(&watch->watch, fronts, settings)) {
        watch->certificates_read = true;
        watch->certificates_err =
            weir_certificates_load(&watch->certificates, fronts, settings, &watch->reason);
    }
    if (watch->wanted & WEIR_WANT_WATCH)
        watch->state = weir_table_file_state(watch->daemon->table);
    if (watch->wanted & WEIR_WANT_ENVOY_WATCH)
        weir_envoy_reading_watch(&run->reading, run->shared);
}

static void watch_apply(struct weir_daemon *daemon, struct weir_watch *watch)
{
    struct weir_envoy_run *run = weir_daemon_envoy_run(daemon);
    if (watch->wanted & WEIR_WANT_WATCH) {
        daemon->certificate_watch = watch->watch;
        weir_daemon_state_seen(daemon, watch->state);
    }
    if (watch->certificates_read && watch->certificates_err < 0) {
        weir_log_event(&daemon->log, WEIR_LOG_ERROR, "certificates_failed", "reason",
                       watch->reason.text);
    } else if (watch->certificates_read) {
        weir_daemon_set_certificates(daemon, watch->certificates);
        watch->certificates = NULL;
        weir_log_event(&daemon->log, WEIR_LOG_INFO, "certificates_read", NULL, NULL);
    }
    if (watch->wanted & WEIR_WANT_ENVOY_WATCH)
        weir_envoy_shared_take(run->shared, &run->reading);
}

void weir_daemon_watch_drop(struct weir_daemon *daemon)
{
    struct weir_envoy_run *run = weir_daemon_envoy_run(daemon);
    struct weir_watch *watch = &daemon->watching;
    weir_certificates_unref(watch->certificates);
    if (run)
        weir_envoy_reading_drop(&run->reading);
    weir_rules_unref(watch->rules);
    memset(watch, 0, sizeof *watch);
}

static void watch_done(struct weir_job *job)
{
    struct weir_watch *watch = (struct weir_watch *)(void *)job; /* its first member */
    struct weir_daemon *daemon = watch->daemon;
    if (!daemon->stopping)
        watch_apply(daemon, watch);
    weir_daemon_watch_drop(daemon);
    weir_daemon_want(daemon, 0);
}

void weir_daemon_watch_start(struct weir_daemon *daemon, unsigned wanted)
{
    struct weir_watch *watch = &daemon->watching;
    memset(watch, 0, sizeof *watch);
    watch->job =
        (struct weir_job){.what = "a look at certificates, Envoy's folder and the state file",
                          .run = watch_run,
                          .done = watch_done};
    watch->daemon = daemon;
    watch->wanted = weir_daemon_envoy(daemon) ? wanted : wanted & ~(unsigned)WEIR_WANT_ENVOY_WATCH;
    watch->rules = weir_rules_ref(daemon->rules);
    watch->watch = daemon->certificate_watch;
    if (weir_daemon_envoy(daemon))
        weir_envoy_reading_begin(&weir_daemon_envoy_run(daemon)->reading,
                                 weir_daemon_envoy(daemon));
    weir_background_start(daemon->background, &watch->job);
}
