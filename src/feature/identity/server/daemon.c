/* SPDX-License-Identifier: Apache-2.0 */
/* see daemon.h */
#include "feature/identity/server/daemon.h"

#include "feature/identity/server/directories.h"
#include "feature/identity/server/metrics.h"
#include "server/admin/forget_api.h"
#include "server/daemon/daemon.h"
#include "server/daemon/services/restart.h"

static int identities_open(struct weir_daemon *daemon, struct weir_reason *reason)
{
    struct weir_directories *directories = NULL;
    int err =
        weir_directories_open(&directories, daemon->rules, daemon->table, &daemon->log, reason);
    weir_own_set(daemon, WEIR_OWN_IDENTITIES, directories);
    return err;
}

static int identities_for_worker(struct weir_daemon *daemon, struct weir_worker_options *options,
                                 struct weir_reason *reason)
{
    if (options->index < WEIR_WORKERS_MAX)
        options->directories = weir_daemon_directories(daemon);
    return 0;
}

static void identities_apply(struct weir_daemon *daemon, struct weir_rules *rules, void *read)
{
    const struct weir_identities_settings *old = &weir_rules_settings(daemon->rules)->identities;
    const struct weir_identities_settings *new = &weir_rules_settings(rules)->identities;
    weir_restart_note(daemon, weir_directories_differ(old, new), "identities");
    if (weir_daemon_directories(daemon) && new->redis.url)
        weir_directories_set(weir_daemon_directories(daemon), new);
}

static void identities_close(struct weir_daemon *daemon)
{
    weir_directories_close(weir_daemon_directories(daemon));
    weir_own_set(daemon, WEIR_OWN_IDENTITIES, NULL);
}

static const struct weir_http_route *const identities_routes[] = {
    weir_forget_routes,
    NULL,
};

const struct weir_service weir_service_identities = {
    .name = "identities",
    .routes = identities_routes,
    .open = identities_open,
    .for_worker = identities_for_worker,
    .apply = identities_apply,
    .metrics = weir_identities_metrics,
    .close = identities_close,
};
