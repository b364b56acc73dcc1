/* SPDX-License-Identifier: Apache-2.0 */
/* Who uses what, in the life of the daemon. */
#ifndef WEIR_FEATURE_USE_SERVER_DAEMON_H
#define WEIR_FEATURE_USE_SERVER_DAEMON_H

#include "server/own.h"
#include "server/service.h"

struct weir_use_service;

extern const struct weir_service weir_service_use;

/* NULL: it is not open, or keeps nothing. */
static inline struct weir_use_service *weir_daemon_use(const struct weir_daemon *daemon)
{
    return weir_own(daemon, WEIR_OWN_USE);
}

#endif
