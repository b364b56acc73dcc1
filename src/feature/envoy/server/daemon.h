/* SPDX-License-Identifier: Apache-2.0 */
/* Envoy's service and its quotas, in the life of the daemon, where the rules or the command line
 * name its configuration. What is wrong with that is logged, and every call then fails. */
#ifndef WEIR_FEATURE_ENVOY_SERVER_DAEMON_H
#define WEIR_FEATURE_ENVOY_SERVER_DAEMON_H

#include "server/service.h"

extern const struct weir_service weir_service_envoy;

#endif
