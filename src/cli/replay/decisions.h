/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of `weir replay --decisions`: one JSON object a request, for a model to compare with.
 *
 *   {"n":1,"allowed":true,"limits":[{"name":"api","allowed":true,"remaining":99,"retry_after_ns":0,
 *    "reset_after_ns":600000000,"delay_ns":0}]}
 *
 * `n` counts the lines of the trace that are not blank, from 1; a malformed one has a number and no
 * line here. Limits are in the order of the rules file, only those that applied; `allowed` is
 * each limit's own verdict. `remaining` is null for `rate: unlimited`; `retry_after_ns` is -1 for
 * "never". `standing` is there where it is another than good; a request with `"allowed":false` and
 * no limit that denies was denied by it.
 *
 * Memory: one buffer. Threads: one owner.
 */
#ifndef WEIR_CLI_REPLAY_DECISIONS_H
#define WEIR_CLI_REPLAY_DECISIONS_H

#include <stdint.h>

#include "core/check.h"
#include "rules/rules.h"

struct replay_decisions;

/* Opens `path` ("-": standard output) for writing. Returns NULL with errno set. */
struct replay_decisions *replay_decisions_open(const char *path);

/* Writes one finished decision made under `rules`. A failed write is kept for the close. */
void replay_decisions_add(struct replay_decisions *decisions, uint64_t n,
                          const struct weir_rules *rules, const struct weir_decision *decision);

/* Writes what is left and closes. Returns 0 or the errno of the first failure. */
int replay_decisions_close(struct replay_decisions *decisions);

#endif
