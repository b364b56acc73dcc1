/* SPDX-License-Identifier: Apache-2.0 */
/* DEL, EXISTS, TTL, PTTL and DBSIZE, on the states that commands have made. See resp.h. */
#ifndef WEIR_SERVER_RESP_KEYS_H
#define WEIR_SERVER_RESP_KEYS_H

#include "server/resp/resp.h"

void weir_resp_del(struct weir_resp_call *call);
void weir_resp_exists(struct weir_resp_call *call);
void weir_resp_ttl(struct weir_resp_call *call);
void weir_resp_pttl(struct weir_resp_call *call);
void weir_resp_dbsize(struct weir_resp_call *call);

#endif
