/* SPDX-License-Identifier: Apache-2.0 */
/* Placement: which slot a new key gets, and who has to go for it.
 *
 * A slot whose state equals a fresh one is free. A key goes into its first bucket when that has a
 * free slot, so that most lookups find it there, and else into its second. When both are full, one
 * of their keys moves to its own other bucket, if that has room (target.c; Pagh and Rodler,
 * "Cuckoo hashing", 2001, with one step). On the way to 75 % fill 1.8 % of keys find both buckets
 * full, and six tries to move somebody leave 0.005 %; then 91 % of keys are in their first bucket.
 *
 * Where nobody can move, somebody has to go: of the account that account.h says, the state that has
 * used the least part of its capacity, and of such the one nearest to fresh. A state that denies
 * goes only for an account that is below its guarantee, and after all others. So what a flood of
 * new keys makes weir forget is little, and of the limit that is flooded.
 *
 * But where half of an account or more denies, its states that do not are spared: a new key of its
 * own finds no room, and one of an account below its guarantee takes the place of one that denies.
 * Else whoever floods a limit with keys that he uses up would have all others of it forgotten, one
 * after the other, as the only ones that may go; and when they come back there would be no room for
 * them.
 */
#ifndef WEIR_TABLE_PLACEMENT_H
#define WEIR_TABLE_PLACEMENT_H

#include "table/slot.h"

enum placement {
    PLACE_EMPTY,   /* a slot that nobody has */
    PLACE_RECLAIM, /* one whose state is fresh */
    PLACE_EVICT,   /* one whose state is live */
    PLACE_NONE,
};

struct place {
    struct table_bucket *bucket; /* out */
    uint32_t slot;               /* out */
    uint32_t taken[2];           /* in: slots of the two buckets that are not to be had */
};

/* Finds a free slot in two buckets (the same one twice is legal), both locked: the first one's
 * first.
 */
enum placement placement_free(const struct weir_table *table, struct table_bucket *const pair[2],
                              uint64_t now_ns, struct place *place);

/* Finds who has to go for a new state of these parameters, where no slot is free; PLACE_EVICT or
 * PLACE_NONE. Both buckets are locked. */
enum placement placement_evict(struct weir_table_owner *owner, struct table_bucket *const pair[2],
                               uint16_t param, uint64_t now_ns, struct place *place);

/* Whether a state `a` goes rather than `b`: what has used less, and last (or first) of all what
 * denies. */
bool placement_goes_first(const struct slot_view *a, const struct slot_view *b, bool denying_first);

#endif
