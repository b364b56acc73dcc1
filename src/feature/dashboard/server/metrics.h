/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of the dashboard: its browsers and sessions. Threads: the admin worker's. */
#ifndef WEIR_FEATURE_DASHBOARD_SERVER_METRICS_H
#define WEIR_FEATURE_DASHBOARD_SERVER_METRICS_H

#include "server/admin/exposition.h"

extern const struct weir_metric_table weir_dashboard_metrics[];

#endif
