/* SPDX-License-Identifier: Apache-2.0 */
/* The listener of decisions over HTTP, in the life of the daemon. */
#ifndef WEIR_SERVER_HTTP_DAEMON_H
#define WEIR_SERVER_HTTP_DAEMON_H

#include "server/service.h"

extern const struct weir_service weir_service_http;

#endif
