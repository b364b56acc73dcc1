/* SPDX-License-Identifier: Apache-2.0 */
/* ZCARD, ZRANGE, ZREMRANGEBYSCORE and HMGET: what pyrate-limiter asks of the sorted set or the hash
 * that it keeps, answered from the states that weir has in their place (rates.h, fixed.h).
 *
 *   count   ZCARD key                          what the rate has used that remembers most
 *   peek    ZRANGE key -n -n WITHSCORES        when the n-th of the newest was, by weir's clock;
 *                                              its name is "item", for weir keeps none. Of a fixed
 *                                              window, when the window began, by the client's
 *                                              clock: a counter keeps no times of requests
 *   leak    ZREMRANGEBYSCORE key 0 time        forgets fixed windows that began before; logs have
 *                                              dropped by themselves what has left their window
 *   count of buckets  HMGET key tat1 tat2 ..   when the bucket of each rate will be full, in us
 *                                              since 1970 by weir's clock; null: it is
 *
 * Beside a store that nodes share there are no counters, and no looks into logs: leak does nothing,
 * ZCARD and ZRANGE are errors. */
#ifndef WEIR_SERVER_RESP_SCRIPT_SORTED_H
#define WEIR_SERVER_RESP_SCRIPT_SORTED_H

#include "server/resp/resp.h"

void weir_resp_zcard(struct weir_resp_call *call);
void weir_resp_zrange(struct weir_resp_call *call);
void weir_resp_zremrangebyscore(struct weir_resp_call *call);
void weir_resp_hmget(struct weir_resp_call *call);

#endif
