/* SPDX-License-Identifier: Apache-2.0 */
/* The store that nodes share, in the life of the daemon. */
#ifndef WEIR_SERVER_STORES_DAEMON_H
#define WEIR_SERVER_STORES_DAEMON_H

#include "server/service.h"

extern const struct weir_service weir_service_stores;

#endif
