/* SPDX-License-Identifier: Apache-2.0 */
/* INCREX: fixed windows. See resp.h. */
#ifndef WEIR_SERVER_RESP_INCREX_H
#define WEIR_SERVER_RESP_INCREX_H

#include "server/resp/resp.h"

void weir_resp_increx(struct weir_resp_call *call);

#endif
