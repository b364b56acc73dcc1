/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of the store that nodes share, over all workers. Threads: the admin worker's. */
#ifndef WEIR_SERVER_STORES_METRICS_H
#define WEIR_SERVER_STORES_METRICS_H

#include "server/admin/exposition.h"

/* Writes nothing without such a store. */
void weir_metrics_of_store(struct weir_metrics *metrics);

/* A histogram of calls to a Redis, by the bounds of redis_latency_bounds_us; `ns`: their sum. */
void weir_metrics_latency(struct weir_metrics *metrics, const char *name, const char *help,
                          const _Atomic uint64_t *buckets, uint64_t ns);

#endif
