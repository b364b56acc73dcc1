/* SPDX-License-Identifier: Apache-2.0 */
/* Scripts that hold one key to several rates: a decision on as many buckets or logs, of which all
 * are charged or none is. See script.h; fixed windows are in fixed.h.
 *
 * Each rate has a state of its own, named by the key and the rate's place. The states are found
 * again only by the same list of rates. What looks at all states of a key (DEL of one key, and
 * sorted.h) looks at as many places as any script has had since the server started. */
#ifndef WEIR_SERVER_RESP_SCRIPT_RATES_H
#define WEIR_SERVER_RESP_SCRIPT_RATES_H

#include "server/resp/script/script.h"

#define WEIR_SCRIPT_RATES_MAX 16
#define WEIR_SCRIPT_RATE_NAME_MAX 1024 /* bytes of a key with the place behind it */

void weir_script_rates(const struct weir_script_call *script);

/* The key of the rate at a place: the first one's is the key itself, of at most
 * WEIR_SCRIPT_RATE_NAME_MAX - 2 bytes. The others are written to `name`. */
struct weir_bytes weir_script_rate_key(struct weir_bytes key, uint32_t place,
                                       char name[WEIR_SCRIPT_RATE_NAME_MAX]);
/* At how many places a key may have states: 1 or more; 1 where the key is too long for others. */
uint32_t weir_script_rate_places(const struct weir_resp_shared *shared, struct weir_bytes key);

#endif
