/* SPDX-License-Identifier: Apache-2.0 */
/* see daemon.h */
#include "server/stores/daemon.h"

#include "server/daemon/daemon.h"
#include "server/stores/metrics.h"

static int stores_open(struct weir_daemon *daemon, struct weir_reason *reason)
{
    return weir_shared_store_open(&daemon->shared, daemon->rules, &daemon->log, reason);
}

static int stores_for_worker(struct weir_daemon *daemon, struct weir_worker_options *options,
                             struct weir_reason *reason)
{
    options->shared = daemon->shared;
    if (daemon->shared || daemon->sticky)
        options->deadline_ns = weir_rules_settings(daemon->rules)->store.deadline_ns;
    return 0;
}

static void stores_close(struct weir_daemon *daemon)
{
    weir_shared_store_close(daemon->shared);
    daemon->shared = NULL;
}

const struct weir_service weir_service_stores = {
    .name = "store",
    .open = stores_open,
    .for_worker = stores_for_worker,
    .metrics = weir_metrics_of_store,
    .close = stores_close,
};
