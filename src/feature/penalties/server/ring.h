/* SPDX-License-Identifier: Apache-2.0 */
/* Strikes of other processes on the state file: those that libweir counts, as inside nginx, come
 * through a ring beside it (feature/standing/strike_ring.h).
 *
 * A strike counts as one of this process if the newest rules have that very penalty. Who may write
 * the ring may strike anyone, but not as a value that the kind does not have: the id of a value
 * that is no secret is computed anew, and a time is at most an hour old.
 *
 * With the ring, the group of the state file gets the right to read the map of standing.
 *
 * The ring is looked at WEIR_STRIKES_POLL_MS apart. Threads: the main one.
 */
#ifndef WEIR_FEATURE_PENALTIES_SERVER_RING_H
#define WEIR_FEATURE_PENALTIES_SERVER_RING_H

#include "feature/penalties/server/penalties.h"
#include "feature/standing/strike_ring.h"

#define WEIR_STRIKES_POLL_MS 100

struct weir_penalties_ring {
    struct weir_strike_ring *ring; /* NULL: none, or not now */
    struct weir_penalties *penalties;
    struct weir_standing_service *standing;
    struct weir_rules *const *rules; /* the newest */
    struct weir_table *table;
    char *state_file; /* owned */
    uv_timer_t poll;  /* its loop closes it */
    unsigned ticks;
    bool failed;      /* to keep it: logged */
    uint64_t refused; /* strikes of other rules, or that are none */
    uint64_t lost;    /* of the rings before, as `deferred` */
    uint64_t deferred;
};

/* Begins to take strikes on this loop, for the state file; what `ring` points at outlives it. A
 * ring that cannot be kept is logged, and tried again every second. Errors: WEIR_ERR_MEMORY,
 * WEIR_ERR_IO (the loop). */
int weir_penalties_ring_open(struct weir_penalties_ring *ring, const char *state_file,
                             uv_loop_t *loop) __attribute__((warn_unused_result));

/* After the loop has closed. One that was never opened is all zero. */
void weir_penalties_ring_close(struct weir_penalties_ring *ring);

/* Takes a strike, or counts that it is none. False: it moves a ladder, and there is no room for
 * it now. `again`: there was none before, which was counted then. */
bool weir_penalties_ring_take(struct weir_penalties_ring *ring,
                              const struct weir_ring_strike *strike, uint64_t now_ns, bool again);

/* How many were lost or refused. */
uint64_t weir_penalties_ring_lost(const struct weir_penalties_ring *ring);
/* How many moves their processes had to put off, as the ring was full. */
uint64_t weir_penalties_ring_deferred(const struct weir_penalties_ring *ring);

#endif
