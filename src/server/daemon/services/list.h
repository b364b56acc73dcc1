/* SPDX-License-Identifier: Apache-2.0 */
/* The services of the daemon (server/service.h). */
#ifndef WEIR_SERVER_DAEMON_SERVICES_LIST_H
#define WEIR_SERVER_DAEMON_SERVICES_LIST_H

#include "server/service.h"

/* All of them, in their order; NULL behind the last. A daemon has its own list, so that a test can
 * leave one out. */
extern const struct weir_service *const weir_services[];

#endif
