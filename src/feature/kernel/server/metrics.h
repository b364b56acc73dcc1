/* SPDX-License-Identifier: Apache-2.0 */
/* What /metrics and /v1/kernel show of bans in the kernel, and of the filter for packets. Threads:
 * the admin worker's. */
#ifndef WEIR_FEATURE_KERNEL_SERVER_METRICS_H
#define WEIR_FEATURE_KERNEL_SERVER_METRICS_H

#include "server/admin/exposition.h"
#include "server/http/http.h"

extern const struct weir_metric_table weir_kernel_metrics[];

/* GET /v1/kernel */
extern const struct weir_http_route weir_kernel_routes[];

#endif
