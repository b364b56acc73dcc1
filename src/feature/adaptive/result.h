/* SPDX-License-Identifier: Apache-2.0 */
/* How a request ended: what the controllers learn from. Made from settlements, reports and releases
 * of leases, or in a replay from the `status` and `latency_ms` of a trace. */
#ifndef WEIR_FEATURE_ADAPTIVE_RESULT_H
#define WEIR_FEATURE_ADAPTIVE_RESULT_H

#include <stdbool.h>
#include <stdint.h>

#define WEIR_IN_FLIGHT_UNKNOWN UINT32_MAX

struct weir_result {
    uint64_t now_ns;     /* when it ended */
    uint64_t latency_ns; /* how long it took; it began at now_ns - latency_ns */
    uint32_t in_flight; /* requests in flight when it ended, itself included; WEIR_IN_FLIGHT_UNKNOWN
                           counts as if the limit were in full use */
    bool failed;        /* by its status or its latency, as the rules say (`on`) */
};

/* A controller grows its limit only while at least half of it is in use, because without load it
 * learns nothing about what the backend can take. */
static inline bool weir_result_in_use(const struct weir_result *result, uint64_t limit)
{
    return result->in_flight == WEIR_IN_FLIGHT_UNKNOWN || (uint64_t)result->in_flight * 2 >= limit;
}

#endif
