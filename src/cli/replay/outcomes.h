/* SPDX-License-Identifier: Apache-2.0 */
/* What outcomes give back in a replay: `status` and `latency_ms` of the lines, in virtual time.
 *
 * A request that was allowed and whose status some limit's `refund_on` has is settled at its time
 * and its latency, before the first line of a later time, as the server settles a reservation by
 * its status (feature/reserve/engine/reservation.h), `refund_cap` included. Outcomes that are due
 * after the last line change nothing.
 *
 * Memory: 3 KiB for each outcome that is due, at most REPLAY_OUTCOMES_MAX of them; beyond that the
 * earliest is settled early. Threads: one owner.
 */
#ifndef WEIR_CLI_REPLAY_OUTCOMES_H
#define WEIR_CLI_REPLAY_OUTCOMES_H

#include "feature/reserve/engine/reservation.h"

#define REPLAY_OUTCOMES_MAX 65536

/* A latency beyond it is taken for it. */
#define REPLAY_LATENCY_MAX_NS (WEIR_RESERVATION_LIFE_MAX_NS - UINT64_C(1000000000))

struct replay_outcomes;

/* NULL: no memory. */
struct replay_outcomes *replay_outcomes_open(struct weir_engine *engine);
void replay_outcomes_close(struct replay_outcomes *outcomes);

/* Before a decision with this status is queued: makes it one whose outcome may give back. */
void replay_outcomes_expect(struct replay_outcomes *outcomes, struct weir_decision *decision,
                            uint64_t cost, uint64_t status);

/* It was decided, at `now_ns`. Errors: WEIR_ERR_MEMORY. */
int replay_outcomes_add(struct replay_outcomes *outcomes, const struct weir_decision *decision,
                        uint64_t now_ns, uint64_t latency_ns, uint64_t status)
    __attribute__((warn_unused_result));

/* Whether there are any that have not come yet. */
bool replay_outcomes_wait(const struct replay_outcomes *outcomes);

/* Takes one that is due at `now_ns` or before it, as a decision to be run at *due_ns and released;
 * NULL: there is none. While it runs, `done` is called for it. */
struct weir_decision *replay_outcomes_due(struct replay_outcomes *outcomes, uint64_t now_ns,
                                          uint64_t *due_ns);

#endif
