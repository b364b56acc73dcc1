/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of callers that are kept in Redis, over all workers. Threads: the admin worker's. */
#ifndef WEIR_FEATURE_IDENTITY_SERVER_METRICS_H
#define WEIR_FEATURE_IDENTITY_SERVER_METRICS_H

#include "server/admin/exposition.h"

extern const struct weir_metric_table weir_identities_metrics[];

#endif
