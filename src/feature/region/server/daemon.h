/* SPDX-License-Identifier: Apache-2.0 */
/* The stores of other regions, in the life of the daemon. */
#ifndef WEIR_FEATURE_REGION_SERVER_DAEMON_H
#define WEIR_FEATURE_REGION_SERVER_DAEMON_H

#include "server/own.h"
#include "server/service.h"

struct weir_lenders;

extern const struct weir_service weir_service_regions;

/* NULL: it is not open, or keeps nothing. */
static inline struct weir_lenders *weir_daemon_lenders(const struct weir_daemon *daemon)
{
    return weir_own(daemon, WEIR_OWN_REGIONS);
}

#endif
