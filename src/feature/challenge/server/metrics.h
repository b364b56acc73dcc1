/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of the challenge. */
#ifndef WEIR_FEATURE_CHALLENGE_SERVER_METRICS_H
#define WEIR_FEATURE_CHALLENGE_SERVER_METRICS_H

#include "server/admin/exposition.h"

/* Writes nothing without a challenge listener. */
void weir_metrics_of_challenge(struct weir_metrics *metrics);

#endif
