/* SPDX-License-Identifier: Apache-2.0 */
/* INCREX key [BYINT n] [LBOUND l] [UBOUND u] [SATURATE] [EX s|PX ms|EXAT s|PXAT ms|PERSIST] [ENX]:
 * adds to a counter within bounds and sets its end, as in Redis 8.8. See resp.h.
 *
 * Answers what the counter is then, and what was added: 0 where the sum would leave the bounds, and
 * then nothing is changed; with SATURATE it becomes the bound. BYFLOAT is refused, for weir counts
 * in integers.
 *
 * Where nodes share a store there are no counters, and INCREX with UBOUND, a life and ENX is a
 * fixed window (increx_window.c). Source: https://redis.io/docs/latest/commands/increx/ */
#ifndef WEIR_SERVER_RESP_INCREX_H
#define WEIR_SERVER_RESP_INCREX_H

#include "server/resp/resp.h"

enum weir_increx_option {
    WEIR_INCREX_BY = 1,
    WEIR_INCREX_LOWER = 2,
    WEIR_INCREX_UPPER = 4,
    WEIR_INCREX_SATURATE = 8,
    WEIR_INCREX_EX = 16,
    WEIR_INCREX_PX = 32,
    WEIR_INCREX_EXAT = 64,
    WEIR_INCREX_PXAT = 128,
    WEIR_INCREX_PERSIST = 256,
    WEIR_INCREX_ENX = 512,
};

/* A command, read. */
struct weir_increx {
    int64_t by, lower, upper;
    int64_t time;     /* of the life or the end, as it was given */
    uint16_t options; /* that were given */
};

void weir_resp_increx(struct weir_resp_call *call);

#endif
