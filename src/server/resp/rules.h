/* SPDX-License-Identifier: Apache-2.0 */
/* WEIR.CHECK, .PEEK, .REFUND, .RESET, .RELEASE, .RESERVE and .SETTLE: the limits of the rules
 * file. See resp.h. */
#ifndef WEIR_SERVER_RESP_RULES_H
#define WEIR_SERVER_RESP_RULES_H

#include "server/resp/resp.h"

void weir_resp_check(struct weir_resp_call *call);
void weir_resp_peek(struct weir_resp_call *call);
void weir_resp_refund(struct weir_resp_call *call);
void weir_resp_reset_states(struct weir_resp_call *call);
void weir_resp_release(struct weir_resp_call *call);
void weir_resp_reserve(struct weir_resp_call *call);
void weir_resp_settle_reservation(struct weir_resp_call *call);

#endif
