/* SPDX-License-Identifier: Apache-2.0 */
/* What listeners know of their callers, in the life of the daemon: guesses and overlooked names. */
#ifndef WEIR_SERVER_NET_DAEMON_H
#define WEIR_SERVER_NET_DAEMON_H

#include "server/service.h"

extern const struct weir_service weir_service_net;

#endif
