/* SPDX-License-Identifier: Apache-2.0 */
/* Scores, in the life of the daemon. */
#ifndef WEIR_FEATURE_SCORE_SERVER_DAEMON_H
#define WEIR_FEATURE_SCORE_SERVER_DAEMON_H

#include "server/service.h"

extern const struct weir_service weir_service_score;

#endif
