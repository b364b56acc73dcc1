/* SPDX-License-Identifier: Apache-2.0 */
/* What /metrics shows of Envoy's quota service. Threads: the admin worker's. */
#ifndef WEIR_FEATURE_ENVOY_SERVER_QUOTA_METRICS_H
#define WEIR_FEATURE_ENVOY_SERVER_QUOTA_METRICS_H

#include "server/admin/exposition.h"

extern const struct weir_metric_table weir_quota_metrics[];

#endif
