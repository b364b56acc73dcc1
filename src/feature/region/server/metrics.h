/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of the other regions, which lend to this node, and which it asks. */
#ifndef WEIR_FEATURE_REGION_SERVER_METRICS_H
#define WEIR_FEATURE_REGION_SERVER_METRICS_H

#include "server/admin/exposition.h"

/* Without regions in the rules, or a store that nodes share, there are none. */
extern const struct weir_metric_table weir_region_metrics[];

#endif
