/* SPDX-License-Identifier: Apache-2.0 */
/* Callers that are kept in Redis, in the life of the daemon. */
#ifndef WEIR_FEATURE_IDENTITY_SERVER_DAEMON_H
#define WEIR_FEATURE_IDENTITY_SERVER_DAEMON_H

#include "server/service.h"

extern const struct weir_service weir_service_identities;

#endif
