/* SPDX-License-Identifier: Apache-2.0 */
/* The metrics of the other nodes of a fleet. Threads: the admin worker's. */
#ifndef WEIR_FEATURE_STICKY_SERVER_METRICS_H
#define WEIR_FEATURE_STICKY_SERVER_METRICS_H

#include "server/admin/exposition.h"

extern const struct weir_metric_table weir_sticky_metrics[];

#endif
