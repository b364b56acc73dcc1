/* SPDX-License-Identifier: Apache-2.0 */
/* The services of the daemon (server/service.h). */
#ifndef WEIR_SERVER_DAEMON_SERVICES_LIST_H
#define WEIR_SERVER_DAEMON_SERVICES_LIST_H

#include "server/service.h"

/* All of them, in their order; NULL behind the last. Tests leave one out. */
extern const struct weir_service *const weir_services[];

/* Whether the list has a service of this name, and those that it needs: `has` of weir_problems, for
 * a caller that loads rules which this server, or one like it, is to obey. */
bool weir_services_have(const char *name);

#endif
