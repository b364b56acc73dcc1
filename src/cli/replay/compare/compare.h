/* SPDX-License-Identifier: Apache-2.0 */
/* `weir replay --compare`: each algorithm beside an exact log for the same limit.
 *
 * For every limit of the rules file that has a rate, the requests that it applied to are fed, key
 * by key and with the same costs and times, to each algorithm with the same N and W, and to an
 * exact sliding log of any length (log.h). Each decides on its own, as if it were the only
 * limit, and counts only what it admitted itself. So this shows how the algorithms differ; what
 * the rules as a whole would have done is in the report of the replay itself.
 *
 *   wrong allows   admitted, and the exact log denied: shown as a share of what the log denied
 *   wrong denials  denied, and the exact log admitted: shown as a share of what the log admitted
 *   worst window   the most that one key was admitted in any half-open window of length W (the
 *                  queue's admissions count at the time they are released)
 *
 * Shares are of the log's denials and admissions, not of all traffic: a limit that hardly anyone
 * reaches makes every algorithm look right.
 *
 * Memory: one state and one log of admissions for each algorithm and key, about 2 KiB a key and 16
 * bytes an admission in the last W; not bounded, as an exact answer needs it.
 * Threads: one owner.
 */
#ifndef WEIR_CLI_REPLAY_COMPARE_COMPARE_H
#define WEIR_CLI_REPLAY_COMPARE_COMPARE_H

#include <stdint.h>
#include <stdio.h>

#include "core/check.h"
#include "rules/rules.h"

struct replay_compare;

/* Returns NULL when out of memory. `rules` is borrowed. */
struct replay_compare *replay_compare_open(const struct weir_rules *rules);
void replay_compare_close(struct replay_compare *compare);

/* Feeds one check of a request at `now_ns` (never decreasing) to the contest of its limit. Checks
 * without a rate (concurrency, unlimited, a missing key) are skipped. Returns 0 or
 * WEIR_ERR_MEMORY. */
int replay_compare_add(struct replay_compare *compare, const struct weir_check *check,
                       uint64_t now_ns) __attribute__((warn_unused_result));

/* Prints all contests, in the order in which their limits first applied. */
void replay_compare_print(const struct replay_compare *compare, FILE *out);

#endif
