/* SPDX-License-Identifier: Apache-2.0 */
/* What /metrics shows of Envoy's quota service. Threads: the admin worker's. */
#ifndef WEIR_FEATURE_ENVOY_SERVER_QUOTA_METRICS_H
#define WEIR_FEATURE_ENVOY_SERVER_QUOTA_METRICS_H

#include "server/admin/exposition.h"

void weir_metrics_of_quotas(struct weir_metrics *metrics);

#endif
