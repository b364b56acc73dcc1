/* SPDX-License-Identifier: Apache-2.0 */
/* One contest of `weir replay --compare` (see compare.h): a limit, the algorithms that could
 * decide it, and for every key of it an exact log and one state of each algorithm.
 *
 * Threads: one owner.
 */
#ifndef WEIR_CLI_REPLAY_COMPARE_CONTEST_H
#define WEIR_CLI_REPLAY_COMPARE_CONTEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/limit.h>

/* The exact log, six algorithms, and the limit as configured where it is none of them. */
#define REPLAY_CONTENDERS_MAX 9
#define REPLAY_CONTENDER_NAME_MAX 64

/* One algorithm's result; that of the exact log has no wrong verdicts. */
struct replay_contender {
    char name[REPLAY_CONTENDER_NAME_MAX];
    uint64_t allowed, denied, wrong_allows, wrong_denials, worst;
    bool configured; /* it is what the rules file says */
};

struct replay_contest;

/* A contest for the N and W of `limit` (copied), which must have a rate. The first contender is the
 * exact log. Returns NULL when out of memory. */
struct replay_contest *replay_contest_open(const struct weir_limit *limit);
void replay_contest_close(struct replay_contest *contest);

/* Feeds one request of one key to all contenders. Times never decrease. Returns 0 or
 * WEIR_ERR_MEMORY. */
int replay_contest_add(struct replay_contest *contest, const uint64_t hash[2], uint64_t now_ns,
                       uint64_t cost) __attribute__((warn_unused_result));

/* The results so far; valid until the contest is closed. */
size_t replay_contest_results(const struct replay_contest *contest,
                              const struct replay_contender **contenders);
uint64_t replay_contest_keys(const struct replay_contest *contest);

#endif
