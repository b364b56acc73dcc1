/* SPDX-License-Identifier: Apache-2.0 */
/* The scripts that the build puts together from *.lua (meson.build says of which): text and SHA-1.
 */
#ifndef WEIR_STORE_REDIS_SCRIPT_TEXTS_H
#define WEIR_STORE_REDIS_SCRIPT_TEXTS_H

#include "store/redis/client/client.h"

/* One check that is decided without an action; of a window, a log, a bucket, leases,
 * a quota. */
extern const struct redis_script redis_script_fixed_window, redis_script_sliding_window,
    redis_script_segments, redis_script_sliding_log, redis_script_bucket, redis_script_concurrency,
    redis_script_quota;
/* Everything else that decides; and WEIR_OP_RELEASE, RESET and LOOK. */
extern const struct redis_script redis_script_mixture, redis_script_operate;
/* Counters that others have a part in: WEIR_CHECK_COUNTER. */
extern const struct redis_script redis_script_counter;
/* Shares of budgets, given and taken back: share/script.h. */
extern const struct redis_script redis_script_share;
/* Standing that all nodes share: feature/standing/server/redis/script.h. */
extern const struct redis_script redis_script_standing_change, redis_script_standing_poll;

#endif
