/* SPDX-License-Identifier: Apache-2.0 */
/* The listener of challenges, in the life of the daemon. */
#ifndef WEIR_FEATURE_CHALLENGE_SERVER_DAEMON_H
#define WEIR_FEATURE_CHALLENGE_SERVER_DAEMON_H

#include "server/service.h"

extern const struct weir_service weir_service_challenge;

#endif
