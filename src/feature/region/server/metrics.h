/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of the other regions, which lend to this node, and which it asks. */
#ifndef WEIR_FEATURE_REGION_SERVER_METRICS_H
#define WEIR_FEATURE_REGION_SERVER_METRICS_H

#include "server/admin/exposition.h"

/* Adds them: the samples of weir_region_up, whose head and own region were written just before, and
 * the families of lending and of questions. Those are left out where no other region is reached. */
void weir_region_metrics(struct weir_metrics *metrics);

#endif
