/* Looking at files that are used while the daemon runs: certificates, Envoy's folder. See daemon.h.
 *
 * All of it on the background thread, since a look at a file may hang as long as reading it.
 */
#include <string.h>

#include "server/daemon.h"

static void watch_run(struct weir_job *job)
{
    struct weir_watch *watch = (struct weir_watch *)(void *)job; /* its first member */
    const struct weir_settings *settings = weir_rules_settings(watch->rules);
    if ((watch->wanted & WEIR_WANT_WATCH) && weir_certificate_watch_due(&watch->watch, settings)) {
        watch->certificates_read = true;
        watch->certificates_err =
            weir_certificates_load(&watch->certificates, settings, &watch->reason);
    }
    if (watch->wanted & WEIR_WANT_ENVOY_WATCH)
        weir_envoy_reading_watch(&watch->envoy, watch->daemon->envoy);
}

static void watch_apply(struct weir_daemon *daemon, struct weir_watch *watch)
{
    if (watch->wanted & WEIR_WANT_WATCH)
        daemon->certificate_watch = watch->watch;
    if (watch->certificates_read && watch->certificates_err < 0) {
        weir_log_event(&daemon->log, WEIR_LOG_ERROR, "certificates_failed", "reason",
                       watch->reason.text);
    } else if (watch->certificates_read) {
        weir_daemon_set_certificates(daemon, watch->certificates);
        watch->certificates = NULL;
        weir_log_event(&daemon->log, WEIR_LOG_INFO, "certificates_read", NULL, NULL);
    }
    if (watch->wanted & WEIR_WANT_ENVOY_WATCH)
        weir_envoy_shared_take(daemon->envoy, &watch->envoy);
}

void weir_daemon_watch_drop(struct weir_daemon *daemon)
{
    struct weir_watch *watch = &daemon->watching;
    weir_certificates_unref(watch->certificates);
    weir_envoy_reading_drop(&watch->envoy);
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
    watch->job = (struct weir_job){.run = watch_run, .done = watch_done};
    watch->daemon = daemon;
    watch->wanted = daemon->envoy ? wanted : wanted & ~(unsigned)WEIR_WANT_ENVOY_WATCH;
    watch->rules = weir_rules_ref(daemon->rules);
    watch->watch = daemon->certificate_watch;
    if (daemon->envoy)
        weir_envoy_reading_begin(&watch->envoy, daemon->envoy);
    weir_background_start(daemon->background, &watch->job);
}
