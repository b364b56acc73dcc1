/* SPDX-License-Identifier: Apache-2.0 */
/* The metrics of penalties. Threads: the admin worker's. */
#ifndef WEIR_FEATURE_PENALTIES_SERVER_METRICS_H
#define WEIR_FEATURE_PENALTIES_SERVER_METRICS_H

#include "server/admin/exposition.h"

extern const struct weir_metric_table weir_penalties_metrics[];

#endif
