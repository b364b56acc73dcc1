/* SPDX-License-Identifier: Apache-2.0 */
/* The metrics of use and of denials. Threads: the admin worker's. */
#ifndef WEIR_FEATURE_USE_SERVER_METRICS_H
#define WEIR_FEATURE_USE_SERVER_METRICS_H

#include "server/admin/exposition.h"

extern const struct weir_metric_table weir_use_metrics[];

/* Collects what they show; once for all of them. */
void weir_use_scrape(struct weir_daemon *daemon);

#endif
