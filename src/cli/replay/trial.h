/* SPDX-License-Identifier: Apache-2.0 */
/* What candidates (engine/effect/candidate.h) would have changed in a replay: per limit how many
 * requests and keys they decide otherwise, and the first of them.
 *
 * Memory: keys that differ are counted exactly, up to a bound, as in tally.h; of each limit
 * the first REPLAY_TRIALS_SHOWN differences are kept. Threads: one owner.
 */
#ifndef WEIR_CLI_REPLAY_TRIAL_H
#define WEIR_CLI_REPLAY_TRIAL_H

#include <stdio.h>

#include "engine/effect/candidate.h"
#include "engine/engine.h"

#define REPLAY_TRIALS_SHOWN 5 /* of a limit: to look them up in the trace */

struct replay_trials;

/* Returns NULL when out of memory. `rules` is borrowed. */
struct replay_trials *replay_trials_open(const struct weir_rules *rules, uint64_t keys_max);
void replay_trials_close(struct replay_trials *trials);

/* Notes a trial of the request in line `line`, decided at `now_ns`; `key` is what to show. Returns
 * 0 or WEIR_ERR_MEMORY. */
int replay_trials_add(struct replay_trials *trials, const struct weir_check *check,
                      enum weir_trial_outcome outcome, struct weir_bytes key, uint64_t line,
                      uint64_t now_ns) __attribute__((warn_unused_result));

/* Prints nothing where no limit has a candidate. */
void replay_trials_print(const struct replay_trials *trials, FILE *out);

#endif
