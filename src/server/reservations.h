/* The open reservations of this process: whose life has ended is to be released.
 *
 * All workers share one of these. A reservation is claimed before it is decided, so that a full
 * list refuses before anything is charged; it is added with its token when it was allowed, and
 * removed when it is settled. Any worker's tick takes those whose life has ended and settles them
 * as WEIR_SETTLE_RELEASE; one whose store does not answer is tried again every
 * WEIR_RESERVATION_AGAIN_NS, for an hour, while at most half of the room is used. Nothing hangs on
 * this list but that: a token that is not in it (of another process, or from before a restart) is
 * settled all the same, and one that is settled elsewhere is released in vain. See
 * engine/reservation.h.
 *
 * Lives are kept in a ring of seconds that is longer than the longest life, ids in chains.
 *
 * Memory: WEIR_RESERVATIONS_MAX places of about 2 KiB, reserved at once and touched only as far as
 * they are used together. Threads: locked within; held for some tens of instructions, and only by
 * what has to do with reservations.
 */
#ifndef WEIR_SERVER_RESERVATIONS_H
#define WEIR_SERVER_RESERVATIONS_H

#include "engine/reservation.h"

#define WEIR_RESERVATIONS_MAX 16384
#define WEIR_RESERVATION_AGAIN_NS UINT64_C(2000000000)

struct weir_reservations;

/* Errors: WEIR_ERR_MEMORY. */
int weir_reservations_open(struct weir_reservations **reservations, uint32_t max)
    __attribute__((warn_unused_result));
void weir_reservations_close(struct weir_reservations *reservations);

/* One more may be made: claims the room for it. Claimed room is used by _add or given back. */
bool weir_reservations_claim(struct weir_reservations *reservations);
void weir_reservations_unclaim(struct weir_reservations *reservations);

/* `ends_at_ns` is on the table's timeline. */
void weir_reservations_add(struct weir_reservations *reservations, uint64_t id, uint64_t ends_at_ns,
                           struct weir_bytes token);

/* It is settled, or released. Does nothing where it is not in the list. */
void weir_reservations_remove(struct weir_reservations *reservations, uint64_t id);

/* Tells one whose life has ended at `now_ns`, to be released and then removed; it is told again
 * later if it is not. Returns the size of its token, 0: there is none. */
size_t weir_reservations_due(struct weir_reservations *reservations, uint64_t now_ns, uint64_t *id,
                             char token[WEIR_RESERVATION_TEXT_MAX]);

/* How many are open or claimed; any thread, no lock. */
uint32_t weir_reservations_count(const struct weir_reservations *reservations);

#endif
