/* SPDX-License-Identifier: Apache-2.0 */
/* The open reservations of this process: whose life has ended is to be released.
 *
 * All workers share one of these. A place is claimed before a reservation is decided, so that a
 * full list refuses before anything is charged; the reservation is added with its token when it has
 * charged something, and removed when it is settled. Any worker's tick takes those whose life has
 * ended and settles them as WEIR_SETTLE_RELEASE; one whose store does not answer is tried again
 * every WEIR_RESERVATION_AGAIN_NS, for an hour, while at most half of the room is used. Nothing
 * hangs on this list but that: a token that is not in it (of another process, or from before a
 * restart) can still be settled, and the release of one that another node has settled has no
 * effect. See feature/reserve/engine/reservation.h.
 *
 * Whom the places are for. A caller may hold as many as are free (dynamic thresholds: Choudhury,
 * Hahne, "Dynamic Queue Length Thresholds for Shared-Memory Packet Switches", IEEE/ACM Transactions
 * on Networking 6(2), 1998, with alpha = 1): one alone gets half of them, n get one n+1st each, and
 * a place is left for the next caller. A caller is a number here; reserve.h says whose.
 *
 * Lives are kept in a ring of seconds that is longer than the longest life, ids and callers in
 * chains.
 *
 * Memory: WEIR_RESERVATIONS_MAX places of about 2.8 KiB, reserved at once and touched only as far
 * as they are used together. Threads: locked within; held for some tens of instructions, and only
 * by what has to do with reservations.
 */
#ifndef WEIR_FEATURE_RESERVE_SERVER_RESERVATIONS_H
#define WEIR_FEATURE_RESERVE_SERVER_RESERVATIONS_H

#include "feature/reserve/engine/reservation.h"

#define WEIR_RESERVATIONS_MAX 16384
#define WEIR_RESERVATION_AGAIN_NS UINT64_C(2000000000)

struct weir_reservations;

/* Errors: WEIR_ERR_MEMORY. */
int weir_reservations_open(struct weir_reservations **reservations, uint32_t max)
    __attribute__((warn_unused_result));
void weir_reservations_close(struct weir_reservations *reservations);

enum weir_reservations_claim {
    WEIR_RESERVATIONS_CLAIMED,
    WEIR_RESERVATIONS_FULL,  /* no place is free */
    WEIR_RESERVATIONS_SHARE, /* the caller holds as many as are free */
    WEIR_RESERVATIONS_CLAIMS
};

/* Claims a place for one more reservation of `caller`: `_add` uses it, or `_unclaim` gives it back.
 * What is refused is counted. */
enum weir_reservations_claim weir_reservations_claim(struct weir_reservations *reservations,
                                                     uint64_t caller, uint32_t *place)
    __attribute__((warn_unused_result));
void weir_reservations_unclaim(struct weir_reservations *reservations, uint32_t place);

/* `ends_at_ns` is on the table's timeline. `caller` is as claimed, or another, if who it is has
 * turned out since; its share was looked at then. */
void weir_reservations_add(struct weir_reservations *reservations, uint32_t place, uint64_t caller,
                           uint64_t id, uint64_t ends_at_ns, struct weir_bytes token);

/* It is settled, or released. Does nothing where it is not in the list. */
void weir_reservations_remove(struct weir_reservations *reservations, uint64_t id);

/* Finds one whose life has ended at `now_ns`, to be released and then removed; it is found again
 * later if it is not. Returns the size of its token, 0: there is none. */
size_t weir_reservations_due(struct weir_reservations *reservations, uint64_t now_ns, uint64_t *id,
                             char token[WEIR_RESERVATION_TEXT_MAX]);

/* How many are open or claimed; and claims that were refused for that reason. Any thread, no lock.
 */
uint32_t weir_reservations_count(const struct weir_reservations *reservations);
uint64_t weir_reservations_refused(const struct weir_reservations *reservations,
                                   enum weir_reservations_claim reason);

#endif
