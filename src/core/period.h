/* SPDX-License-Identifier: Apache-2.0 */
/* Periods: fixed windows and quotas count in periods that end for all that was used at once, which
 * is a reset. No other limit has one: what was used there returns bit by bit. */
#ifndef WEIR_CORE_PERIOD_H
#define WEIR_CORE_PERIOD_H

#include "core/algorithm.h"
#include "core/quota.h"

static inline bool period_resets(const struct weir_limit_spec *spec)
{
    return algorithm_has(spec->algorithm, ALGORITHM_RESETS);
}

/* When the period ends that `now_ns` is in; a limit without a reset is cut into windows of W. */
static inline uint64_t period_end(const struct weir_limit_spec *spec, uint64_t now_ns)
{
    if (spec->algorithm == WEIR_QUOTA)
        return quota_begins(spec, quota_period(spec, now_ns) + 1);
    return (now_ns / spec->window_ns + 1) * spec->window_ns;
}

#endif
