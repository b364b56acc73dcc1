/* SPDX-License-Identifier: Apache-2.0 */
/* WEIR.DECIDE: what another node of the fleet asks, decided by this node's table. See resp.h and
 * feature/sticky/store/sticky.h. */
#ifndef WEIR_SERVER_RESP_PEER_H
#define WEIR_SERVER_RESP_PEER_H

#include "server/resp/resp.h"

void weir_resp_decide_for_peer(struct weir_resp_call *call);

#endif
