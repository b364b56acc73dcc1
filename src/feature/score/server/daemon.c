/* SPDX-License-Identifier: Apache-2.0 */
/* see daemon.h */
#include "feature/score/server/daemon.h"

#include "feature/score/server/metrics.h"

const struct weir_service weir_service_score = {
    .name = "score",
    .metrics = weir_score_metrics,
};
