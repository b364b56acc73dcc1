/* SPDX-License-Identifier: Apache-2.0 */
/* WEIR.CHECKALL: several buckets, one decision. See resp.h. */
#ifndef WEIR_SERVER_RESP_CHECKALL_H
#define WEIR_SERVER_RESP_CHECKALL_H

#include "server/resp/resp.h"

void weir_resp_checkall(struct weir_resp_call *call);

#endif
