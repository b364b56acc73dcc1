/* SPDX-License-Identifier: Apache-2.0 */
/* Scripts that count: each is one edit of counters. See script.h. */
#ifndef WEIR_SERVER_RESP_SCRIPT_COUNTING_H
#define WEIR_SERVER_RESP_SCRIPT_COUNTING_H

#include "server/resp/script/script.h"

void weir_script_count(const struct weir_script_call *script);

#endif
