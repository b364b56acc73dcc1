/* SPDX-License-Identifier: Apache-2.0 */
/* Open reservations, in the life of the daemon. */
#ifndef WEIR_FEATURE_RESERVE_SERVER_DAEMON_H
#define WEIR_FEATURE_RESERVE_SERVER_DAEMON_H

#include "server/own.h"
#include "server/service.h"

struct weir_reservations;

extern const struct weir_service weir_service_reservations;

/* NULL: it is not open, or keeps nothing. */
static inline struct weir_reservations *weir_daemon_reservations(const struct weir_daemon *daemon)
{
    return weir_own(daemon, WEIR_OWN_RESERVATIONS);
}

#endif
