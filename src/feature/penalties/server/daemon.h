/* SPDX-License-Identifier: Apache-2.0 */
/* Penalties, and the strikes of other processes, in the life of the daemon. */
#ifndef WEIR_FEATURE_PENALTIES_SERVER_DAEMON_H
#define WEIR_FEATURE_PENALTIES_SERVER_DAEMON_H

#include "server/service.h"

extern const struct weir_service weir_service_penalties;

#endif
