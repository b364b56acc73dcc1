/* SPDX-License-Identifier: Apache-2.0 */
/* The listener of the Redis protocol: reads requests, finds who may call, runs a command each.
 * See resp.h. */
#ifndef WEIR_SERVER_RESP_FRONT_H
#define WEIR_SERVER_RESP_FRONT_H

#include "server/net/front.h"

extern const struct weir_front weir_resp_front;

#endif
