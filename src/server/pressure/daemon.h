/* SPDX-License-Identifier: Apache-2.0 */
/* A table that is full, in the life of the daemon. */
#ifndef WEIR_SERVER_PRESSURE_DAEMON_H
#define WEIR_SERVER_PRESSURE_DAEMON_H

#include "server/service.h"

extern const struct weir_service weir_service_pressure;

#endif
