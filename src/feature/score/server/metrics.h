/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of scores (`score:`). */
#ifndef WEIR_FEATURE_SCORE_SERVER_METRICS_H
#define WEIR_FEATURE_SCORE_SERVER_METRICS_H

#include "server/admin/exposition.h"

extern const struct weir_metric_table weir_score_metrics[];

/* How many requests each class has had, over all workers. */
void weir_score_requests(const struct weir_daemon *daemon, uint64_t requests[WEIR_CLASSES]);

#endif
