/* SPDX-License-Identifier: Apache-2.0 */
/* Scripts that hold one key to several rates: a decision on as many buckets or logs, of which all
 * are charged or none is. See script.h.
 *
 * Each rate has a state of its own, named by the key and the rate's place. The states are found
 * again only by the same list of rates; DEL forgets that of the first one. */
#ifndef WEIR_SERVER_RESP_SCRIPT_RATES_H
#define WEIR_SERVER_RESP_SCRIPT_RATES_H

#include "server/resp/script/script.h"

void weir_script_rates(const struct weir_script_call *script);

#endif
