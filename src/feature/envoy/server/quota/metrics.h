/* SPDX-License-Identifier: Apache-2.0 */
/* What /metrics shows of Envoy's quota service. Threads: the admin worker's. */
#ifndef WEIR_FEATURE_ENVOY_SERVER_QUOTA_METRICS_H
#define WEIR_FEATURE_ENVOY_SERVER_QUOTA_METRICS_H

#include "feature/envoy/server/quota/service.h"
#include "server/admin/exposition.h"

extern const struct weir_metric weir_quota_rows[];

struct weir_quota_numbers {
    uint64_t streams, buckets, charged;
    uint64_t counts[WEIR_QUOTA_COUNTS];
};

/* Reads a struct weir_quota_numbers. False: there are none. */
bool weir_quota_numbers_read(struct weir_daemon *daemon, void *read);

#endif
