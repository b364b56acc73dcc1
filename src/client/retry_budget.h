/* SPDX-License-Identifier: Apache-2.0 */
/* A budget of retries, so that retries cannot multiply the load of a server that fails.
 *
 * Source: gRPC A6, "Throttling Retry Attempts and Hedged RPCs". The budget holds at most `most`
 * tokens and begins full. A failure takes one token, a success gives back `ratio` of one. A retry
 * is allowed while more than half of the tokens are left. So where everything fails, retries stop
 * after most / 2 failures; where a part `p` fails, they are at most `ratio` of the successes.
 *
 * What counts as a failure is the caller's choice: here answers 500, 502, 503, 504 and broken
 * connections, but not 429, whose retries the pacer bounds (see host.h).
 *
 * Memory: 4 bytes, in thousandths of a token. Threads: one owner.
 */
#ifndef WEIR_CLIENT_RETRY_BUDGET_H
#define WEIR_CLIENT_RETRY_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#define WEIR_RETRY_BUDGET_MOST 10u   /* tokens; gRPC allows 1 to 1000 */
#define WEIR_RETRY_BUDGET_RATIO 100u /* thousandths of a token for a success */

struct weir_retry_budget {
    uint32_t spent_milli; /* 0: full, so that zeroed memory is a full budget */
};

static inline void weir_retry_budget_failure(struct weir_retry_budget *budget)
{
    uint32_t most = WEIR_RETRY_BUDGET_MOST * 1000;
    budget->spent_milli = budget->spent_milli + 1000 < most ? budget->spent_milli + 1000 : most;
}

static inline void weir_retry_budget_success(struct weir_retry_budget *budget)
{
    uint32_t back = WEIR_RETRY_BUDGET_RATIO;
    budget->spent_milli = budget->spent_milli > back ? budget->spent_milli - back : 0;
}

static inline bool weir_retry_budget_allows(const struct weir_retry_budget *budget)
{
    return budget->spent_milli < WEIR_RETRY_BUDGET_MOST * 1000 / 2;
}

#endif
