/* SPDX-License-Identifier: Apache-2.0 */
/* see daemon.h */
#include "server/stores/daemon.h"

#include "feature/sticky/server/daemon.h"
#include "server/daemon/daemon.h"
#include "server/stores/metrics.h"
#include "server/stores/shared_store.h"

static int stores_open(struct weir_daemon *daemon, struct weir_reason *reason)
{
    struct weir_shared_store *shared = NULL;
    int err = weir_shared_store_open(&shared, daemon->rules, &daemon->log, reason);
    weir_own_set(daemon, WEIR_OWN_STORE, shared);
    return err;
}

static int stores_for_worker(struct weir_daemon *daemon, struct weir_worker_options *options,
                             struct weir_reason *reason)
{
    options->shared = weir_daemon_shared(daemon);
    if (weir_daemon_shared(daemon) || weir_daemon_sticky(daemon))
        options->deadline_ns = weir_rules_settings(daemon->rules)->store.deadline_ns;
    return 0;
}

static void stores_close(struct weir_daemon *daemon)
{
    weir_shared_store_close(weir_daemon_shared(daemon));
    weir_own_set(daemon, WEIR_OWN_STORE, NULL);
}

const struct weir_service weir_service_stores = {
    .name = "store",
    .open = stores_open,
    .for_worker = stores_for_worker,
    .metrics = weir_store_metrics,
    .close = stores_close,
};
