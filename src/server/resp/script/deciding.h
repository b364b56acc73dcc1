/* SPDX-License-Identifier: Apache-2.0 */
/* Scripts that decide on a bucket or a log: each is a decision on a limit. See script.h. */
#ifndef WEIR_SERVER_RESP_SCRIPT_DECIDING_H
#define WEIR_SERVER_RESP_SCRIPT_DECIDING_H

#include "server/resp/script/script.h"

void weir_script_decide(const struct weir_script_call *script);

#endif
