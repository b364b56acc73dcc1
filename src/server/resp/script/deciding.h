/* SPDX-License-Identifier: Apache-2.0 */
/* Scripts that decide on a bucket or a log: each is a decision on a limit. See script.h. */
#ifndef WEIR_SERVER_RESP_SCRIPT_DECIDING_H
#define WEIR_SERVER_RESP_SCRIPT_DECIDING_H

#include "server/resp/script/script.h"

void weir_script_decide(const struct weir_script_call *script);

/* A log of `most` in `window_ns`. NULL: it was answered. */
const struct weir_limit *weir_script_log(const struct weir_script_call *script, int64_t most,
                                         uint64_t window_ns);
/* A bucket of `burst`, refilled by `count` per `window` seconds. NULL: it was answered. */
const struct weir_limit *weir_script_bucket(const struct weir_script_call *script, int64_t burst,
                                            uint64_t count, uint64_t window);

#endif
