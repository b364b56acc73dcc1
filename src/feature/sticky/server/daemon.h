/* SPDX-License-Identifier: Apache-2.0 */
/* The other nodes of a fleet, in the life of the daemon. */
#ifndef WEIR_FEATURE_STICKY_SERVER_DAEMON_H
#define WEIR_FEATURE_STICKY_SERVER_DAEMON_H

#include "server/service.h"

extern const struct weir_service weir_service_sticky;

#endif
