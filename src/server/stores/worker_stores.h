/* SPDX-License-Identifier: Apache-2.0 */
/* The stores of a worker: that on this process' table, and beside it what is beyond the process: a
 * store that nodes share, or the tables of a fleet; and the stores of regions that lend.
 *
 * Threads: the worker's.
 */
#ifndef WEIR_SERVER_STORES_WORKER_STORES_H
#define WEIR_SERVER_STORES_WORKER_STORES_H

#include "server/daemon/worker_state.h"

/* Opens them by the options, as worker->base.store, base.local and worker->regions. Errors: those
 * of the stores; what is open then is the caller's to close. */
int weir_worker_stores_open(struct weir_worker_state *worker,
                            const struct weir_worker_options *options, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* Has them go by what a reload has changed, from the next decision on. */
void weir_worker_stores_renew(struct weir_worker_state *worker);

/* Hands back what the worker holds of stores beyond this process, and stops its loop once all of
 * them are closed. There is one at least. */
void weir_worker_stores_leave(struct weir_worker_state *worker);

/* Closes what is open, at once. Handles of stores beyond this process close as the loop runs on. */
void weir_worker_stores_close(struct weir_worker_state *worker);

#endif
