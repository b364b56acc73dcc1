/* SPDX-License-Identifier: Apache-2.0 */
/* see worker_stores.h */
#include "server/stores/worker_stores.h"

#include "feature/region/server/lenders.h"
#include "feature/sticky/server/sticky_peers.h"
#include "server/stores/shared_store.h"
#include "table/table.h"

/* Opens the store beyond this process as worker->base.store, beside that on the `table`. */
static int join_remote(struct weir_worker_state *worker, const struct weir_worker_options *options,
                       struct weir_store *table, struct weir_reason *reason)
{
    if (options->sticky)
        return weir_sticky_peers_join(options->sticky, worker->base.index, &worker->loop, table,
                                      weir_table_secret(options->table), &worker->base.store,
                                      reason);
    return weir_shared_store_join(options->shared, worker->base.index, &worker->loop,
                                  &worker->base.store, reason);
}

static void leave_remote(struct weir_worker_state *worker, void (*closed)(void *context))
{
    if (worker->sticky)
        weir_sticky_peers_leave(worker->sticky, worker->base.index, worker->base.store, closed,
                                worker);
    else
        weir_shared_store_leave(worker->shared, worker->base.index, worker->base.store, closed,
                                worker);
}

int weir_worker_stores_open(struct weir_worker_state *worker,
                            const struct weir_worker_options *options, struct weir_reason *reason)
{
    struct weir_store *table;
    bool alone = !options->shared && !options->sticky;
    worker->base.store = options->store;
    if (worker->base.store)
        return 0;
    int err = weir_store_embedded_open(&table, options->table);
    if (err < 0)
        return err;
    worker->base.store = table;
    if (alone && options->spare)
        err = weir_store_spare_open(&worker->base.local, options->spare);
    if (err < 0 || alone)
        return err;
    err = join_remote(worker, options, table, reason);
    if (err < 0)
        return err;
    worker->shared = options->shared;
    worker->sticky = options->sticky;
    worker->base.remote_store = true;
    worker->base.local = table;
    err = weir_lenders_join(options->lenders, worker->base.index, &worker->loop, &worker->regions,
                            reason);
    if (err == 0)
        worker->lenders = options->lenders;
    return err;
}

void weir_worker_stores_renew(struct weir_worker_state *worker)
{
    if (worker->sticky)
        weir_sticky_peers_take(worker->sticky, worker->base.index, worker->base.store);
}

static void on_left(void *context)
{
    struct weir_worker_state *worker = context;
    if (--worker->stores_left > 0)
        return;
    worker->base.store = NULL;
    uv_stop(&worker->loop);
}

void weir_worker_stores_leave(struct weir_worker_state *worker)
{
    worker->stores_left = 1 + weir_lenders_leave(worker->lenders, worker->base.index,
                                                 &worker->regions, on_left, worker);
    leave_remote(worker, on_left);
}

void weir_worker_stores_close(struct weir_worker_state *worker)
{
    weir_lenders_leave(worker->lenders, worker->base.index, &worker->regions, NULL, NULL);
    if (worker->base.remote_store && worker->base.store)
        leave_remote(worker, NULL);
    else if (worker->base.store)
        worker->base.store->ops->close(worker->base.store);
    if (worker->base.local)
        worker->base.local->ops->close(worker->base.local);
    worker->base.store = worker->base.local = NULL;
}
