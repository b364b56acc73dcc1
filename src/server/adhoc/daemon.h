/* SPDX-License-Identifier: Apache-2.0 */
/* Limits that requests and commands give, in the life of the daemon. */
#ifndef WEIR_SERVER_ADHOC_DAEMON_H
#define WEIR_SERVER_ADHOC_DAEMON_H

#include "server/service.h"

extern const struct weir_service weir_service_adhoc;

#endif
