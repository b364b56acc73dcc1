/* SPDX-License-Identifier: Apache-2.0 */
/* see daemon.h */
#include "feature/webhook/server/daemon.h"

#include "feature/webhook/server/metrics.h"
#include "server/daemon/daemon.h"

static int webhook_open(struct weir_daemon *daemon, struct weir_reason *reason)
{
    int err = weir_webhook_open(&daemon->webhook, &daemon->log);
    daemon->warnings = (struct weir_warnings_sink){&daemon->log, daemon->webhook};
    return err < 0 ? err
                   : weir_webhook_configure(daemon->webhook,
                                            &weir_rules_settings(daemon->rules)->webhook);
}

static int webhook_for_worker(struct weir_daemon *daemon, struct weir_worker_options *options,
                              struct weir_reason *reason)
{
    options->warn = weir_warnings_tell;
    options->warn_context = &daemon->warnings;
    return 0;
}

/* A thread may have to be started for it; without memory or a thread the old settings stay. */
static int webhook_accept(struct weir_daemon *daemon, const struct weir_rules *rules)
{
    return weir_webhook_configure(daemon->webhook, &weir_rules_settings(rules)->webhook);
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
    .accept = webhook_accept,
    .metrics = weir_metrics_of_webhook,
    .stop = webhook_stop,
    .close = webhook_stop, /* one whose open failed */
};
