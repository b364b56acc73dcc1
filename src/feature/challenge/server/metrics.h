/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of the challenge. */
#ifndef WEIR_FEATURE_CHALLENGE_SERVER_METRICS_H
#define WEIR_FEATURE_CHALLENGE_SERVER_METRICS_H

#include "server/admin/exposition.h"

extern const struct weir_metric_table weir_challenge_metrics[];

#endif
