/* SPDX-License-Identifier: Apache-2.0 */
/* see daemon.h */
#include "feature/webhook/server/daemon.h"

#include <stdlib.h>

#include "feature/webhook/server/metrics.h"
#include "server/daemon/daemon.h"

static int webhook_open(struct weir_daemon *daemon, struct weir_reason *reason)
{
    struct weir_warnings_sink *warnings = calloc(1, sizeof *warnings);
    if (!warnings)
        return WEIR_ERR_MEMORY;
    weir_own_set(daemon, WEIR_OWN_WEBHOOK, warnings);
    warnings->log = &daemon->log;
    int err = weir_webhook_open(&warnings->webhook, &daemon->log);
    return err < 0 ? err
                   : weir_webhook_configure(warnings->webhook,
                                            &weir_rules_settings(daemon->rules)->webhook);
}

static int webhook_for_worker(struct weir_daemon *daemon, struct weir_worker_options *options,
                              struct weir_reason *reason)
{
    options->warn = weir_warnings_tell;
    options->warn_context = weir_own(daemon, WEIR_OWN_WEBHOOK);
    return 0;
}

/* A thread may have to be started for it; without memory or a thread the old settings stay. */
static int webhook_accept(struct weir_daemon *daemon, const struct weir_rules *rules)
{
    return weir_webhook_configure(weir_daemon_webhook(daemon),
                                  &weir_rules_settings(rules)->webhook);
}

static void webhook_stop(struct weir_daemon *daemon)
{
    struct weir_warnings_sink *warnings = weir_own(daemon, WEIR_OWN_WEBHOOK);
    if (!warnings)
        return;
    weir_webhook_close(warnings->webhook);
    warnings->webhook = NULL;
}

static void webhook_close(struct weir_daemon *daemon)
{
    webhook_stop(daemon); /* one whose open failed */
    free(weir_own(daemon, WEIR_OWN_WEBHOOK));
    weir_own_set(daemon, WEIR_OWN_WEBHOOK, NULL);
}

const struct weir_service weir_service_webhook = {
    .name = "webhook",
    .open = webhook_open,
    .for_worker = webhook_for_worker,
    .accept = webhook_accept,
    .metrics = weir_webhook_metrics,
    .stop = webhook_stop,
    .close = webhook_close,
};
