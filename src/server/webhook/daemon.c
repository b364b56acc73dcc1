/* SPDX-License-Identifier: Apache-2.0 */
/* see daemon.h */
#include "server/webhook/daemon.h"

#include "server/daemon/daemon.h"
#include "server/webhook/metrics.h"

static int webhook_open(struct weir_daemon *daemon, struct weir_reason *reason)
{
    (void)reason;
    int err = weir_webhook_open(&daemon->webhook, &daemon->log);
    daemon->warnings = (struct weir_warnings_sink){&daemon->log, daemon->webhook};
    return err < 0 ? err
                   : weir_webhook_configure(daemon->webhook,
                                            &weir_rules_settings(daemon->rules)->webhook);
}

static int webhook_for_worker(struct weir_daemon *daemon, struct weir_worker_options *options,
                              struct weir_reason *reason)
{
    (void)reason;
    options->warn = weir_warnings_tell;
    options->warn_context = &daemon->warnings;
    return 0;
}

static void webhook_apply(struct weir_daemon *daemon, struct weir_rules *rules, void *read)
{
    (void)read;
    int err = weir_webhook_configure(daemon->webhook, &weir_rules_settings(rules)->webhook);
    if (err < 0) /* the old settings stay */
        weir_log_event(&daemon->log, WEIR_LOG_ERROR, "webhook_failed", "reason",
                       weir_error_text(err));
}

static void webhook_stop(struct weir_daemon *daemon)
{
    weir_webhook_close(daemon->webhook);
    daemon->webhook = NULL;
}

const struct weir_service weir_service_webhook = {
    .name = "webhook",
    .open = webhook_open,
    .for_worker = webhook_for_worker,
    .apply = webhook_apply,
    .metrics = weir_metrics_of_webhook,
    .stop = webhook_stop,
    .close = webhook_stop, /* one whose open failed */
};
