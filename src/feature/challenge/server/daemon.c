/* SPDX-License-Identifier: Apache-2.0 */
/* see daemon.h */
#include "feature/challenge/server/daemon.h"

#include "feature/challenge/server/metrics.h"
#include "server/http/front.h"

static const struct weir_front *const challenge_fronts[] = {&weir_challenge_front, NULL};

const struct weir_service weir_service_challenge = {
    .name = "challenge",
    .fronts = challenge_fronts,
    .metrics = weir_challenge_metrics,
};
