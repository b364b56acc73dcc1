/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of the store that nodes share, over all workers. Threads: the admin worker's. */
#ifndef WEIR_SERVER_STORES_METRICS_H
#define WEIR_SERVER_STORES_METRICS_H

#include "server/admin/exposition.h"

extern const struct weir_metric_table weir_store_metrics[];

/* A histogram of calls to a Redis, by the bounds of redis_latency_bounds_us; `ns`: their sum. */
void weir_metrics_latency(struct weir_metrics *metrics, const struct weir_metric *metric,
                          const _Atomic uint64_t *buckets, uint64_t ns);

#endif
