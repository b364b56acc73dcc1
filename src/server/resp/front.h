/* SPDX-License-Identifier: Apache-2.0 */
/* The listener of the Redis protocol: reads requests, finds who may call, runs a command each.
 * See resp.h. */
#ifndef WEIR_SERVER_RESP_FRONT_H
#define WEIR_SERVER_RESP_FRONT_H

#include "server/net/front.h"
#include "server/service.h"

extern const struct weir_front weir_resp_front;
/* It, in the life of the daemon. */
extern const struct weir_service weir_service_resp;

#endif
