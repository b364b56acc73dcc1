/* SPDX-License-Identifier: Apache-2.0 */
/* The dashboard, in the life of the daemon. */
#ifndef WEIR_FEATURE_DASHBOARD_SERVER_DAEMON_H
#define WEIR_FEATURE_DASHBOARD_SERVER_DAEMON_H

#include "server/own.h"
#include "server/service.h"

struct weir_dashboard;

extern const struct weir_service weir_service_dashboard;

/* NULL: it is not open, or keeps nothing. */
static inline struct weir_dashboard *weir_daemon_dashboard(const struct weir_daemon *daemon)
{
    return weir_own(daemon, WEIR_OWN_DASHBOARD);
}

#endif
