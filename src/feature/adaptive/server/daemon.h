/* SPDX-License-Identifier: Apache-2.0 */
/* Limits that follow health, in the life of the daemon. */
#ifndef WEIR_FEATURE_ADAPTIVE_SERVER_DAEMON_H
#define WEIR_FEATURE_ADAPTIVE_SERVER_DAEMON_H

#include "server/own.h"
#include "server/service.h"

struct weir_controllers;

extern const struct weir_service weir_service_adaptive;

/* NULL: it is not open, or keeps nothing. */
static inline struct weir_controllers *weir_daemon_controllers(const struct weir_daemon *daemon)
{
    return weir_own(daemon, WEIR_OWN_ADAPTIVE);
}

#endif
