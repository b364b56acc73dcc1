/* SPDX-License-Identifier: Apache-2.0 */
/* An exact log of what one key was admitted, of any length: the judge of `weir replay --compare`.
 *
 * It keeps the times of the admissions in (t-W, t] with their costs and their sum, as sliding_log
 * does, but grows as needed. The same log shows what the worst window of any algorithm was: the
 * greatest sum that it ever held is the most that was admitted in any half-open window
 * [x, x+W), since a window that holds most can be moved to begin or end at an admission.
 *
 * Memory: 16 bytes an entry, doubled when full. All zero bytes are an empty log. One owner.
 */
#ifndef WEIR_CLI_REPLAY_LOG_H
#define WEIR_CLI_REPLAY_LOG_H

#include <stdbool.h>
#include <stdint.h>

struct replay_admission {
    uint64_t t_ns, cost;
};

struct replay_log {
    struct replay_admission *ring;
    uint32_t first, count, room; /* room is 0 or a power of two */
    uint64_t sum, worst;         /* of the costs in the log: now, and the greatest so far */
};

/* Forgets what was admitted at or before now - window; times never decrease. */
void replay_log_expire(struct replay_log *log, uint64_t now_ns, uint64_t window_ns);

/* Adds an admission, not before the last one; equal times merge. Returns 0 or WEIR_ERR_MEMORY. */
int replay_log_add(struct replay_log *log, uint64_t t_ns, uint64_t cost)
    __attribute__((warn_unused_result));

/* Whether an exact limit of `limit` admits the cost, after replay_log_expire. */
bool replay_log_admits(const struct replay_log *log, uint64_t limit, uint64_t cost);

void replay_log_free(struct replay_log *log);

#endif
