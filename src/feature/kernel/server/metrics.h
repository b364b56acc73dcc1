/* SPDX-License-Identifier: Apache-2.0 */
/* What /metrics and /v1/kernel show of bans in the kernel, and of the filter for packets. Threads:
 * the admin worker's. */
#ifndef WEIR_FEATURE_KERNEL_SERVER_METRICS_H
#define WEIR_FEATURE_KERNEL_SERVER_METRICS_H

#include "server/admin/exposition.h"
#include "server/http/http.h"

void weir_metrics_of_kernel(struct weir_metrics *metrics);

/* GET /v1/kernel */
extern const struct weir_http_route weir_kernel_routes[];

#endif
