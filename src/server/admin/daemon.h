/* SPDX-License-Identifier: Apache-2.0 */
/* What the admin listener answers of its own, in the life of the daemon. */
#ifndef WEIR_SERVER_ADMIN_DAEMON_H
#define WEIR_SERVER_ADMIN_DAEMON_H

#include "server/service.h"

extern const struct weir_service weir_service_admin;

/* What the limits have decided, for /metrics. */
extern const struct weir_service weir_service_limits;

#endif
