/* SPDX-License-Identifier: Apache-2.0 */
/* Standing, in the life of the daemon. */
#ifndef WEIR_FEATURE_STANDING_SERVER_DAEMON_H
#define WEIR_FEATURE_STANDING_SERVER_DAEMON_H

#include "server/own.h"
#include "server/service.h"

struct weir_standing_service;

extern const struct weir_service weir_service_standing;

/* NULL: it is not open, or keeps nothing. */
static inline struct weir_standing_service *weir_daemon_standing(const struct weir_daemon *daemon)
{
    return weir_own(daemon, WEIR_OWN_STANDING);
}

#endif
