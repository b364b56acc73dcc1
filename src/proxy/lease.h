/* SPDX-License-Identifier: Apache-2.0 */
/* How long the leases of a request live, and its reservation. */
#ifndef WEIR_PROXY_LEASE_H
#define WEIR_PROXY_LEASE_H

#include <weir/embed.h>

/* Requests that take longer keep their charge. */
#define WEIR_SETTLE_LIFE_NS (UINT64_C(600) * 1000000000)

/* The shortest life of the leases that an answer has given. */
static inline uint64_t weir_lease_life_ns(const struct weir_limit_answer *limits, unsigned count)
{
    uint64_t life_ns = WEIR_WINDOW_MAX_NS;
    for (unsigned i = 0; i < count; i++)
        if (limits[i].algorithm == WEIR_CONCURRENCY && limits[i].window_ns < life_ns &&
            limits[i].window_ns > 0)
            life_ns = limits[i].window_ns;
    return life_ns;
}

#endif
