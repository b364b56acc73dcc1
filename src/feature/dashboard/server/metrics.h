/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of the dashboard: its browsers and sessions. Threads: the admin worker's. */
#ifndef WEIR_FEATURE_DASHBOARD_SERVER_METRICS_H
#define WEIR_FEATURE_DASHBOARD_SERVER_METRICS_H

struct weir_metrics;

void weir_metrics_of_dashboard(struct weir_metrics *metrics);

#endif
