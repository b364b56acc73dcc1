/* SPDX-License-Identifier: Apache-2.0 */
/* CL.THROTTLE, THROTTLE and GCRA: the limit is in every command. See resp.h. */
#ifndef WEIR_SERVER_RESP_THROTTLE_H
#define WEIR_SERVER_RESP_THROTTLE_H

#include "server/resp/resp.h"

void weir_resp_cl_throttle(struct weir_resp_call *call);
void weir_resp_throttle(struct weir_resp_call *call);
void weir_resp_gcra(struct weir_resp_call *call);

/* Forgets limits of commands that may be dropped: before any is taken from the worker's cache. */
void weir_resp_refresh(struct weir_resp_workspace *redis);

/* A bucket as commands give it: `burst` at once, refilled by `count` per `window` units of
 * `unit_ns` (1 or 1,000,000,000). All must be at least 1. Rate and window are brought to lower
 * terms where they are out of range as they stand. Errors: WEIR_ERR_RANGE (a window above 366 days;
 * a burst above 2^40 or that takes more than 2^62 ns to refill), and as weir_adhoc_limits_find. */
int weir_resp_bucket(struct weir_resp_workspace *redis, uint64_t burst, uint64_t count,
                     uint64_t window, uint64_t unit_ns, const struct weir_limit **limit,
                     struct weir_reason *reason) __attribute__((warn_unused_result));

/* Says that a limit of a command cannot be made: `err` is of weir_adhoc_limits_find. */
void weir_adhoc_limit_error(struct weir_resp_call *call, int err, const char *prefix,
                            const struct weir_reason *reason);

#endif
