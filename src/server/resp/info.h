/* SPDX-License-Identifier: Apache-2.0 */
/* INFO, TIME and CONFIG GET. See resp.h. */
#ifndef WEIR_SERVER_RESP_INFO_H
#define WEIR_SERVER_RESP_INFO_H

#include "server/resp/resp.h"

void weir_resp_info(struct weir_resp_call *call);
void weir_resp_time(struct weir_resp_call *call);
void weir_resp_config(struct weir_resp_call *call);

#endif
