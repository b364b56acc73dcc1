/* SPDX-License-Identifier: Apache-2.0 */
/* Placement: which slot a new key gets, and which state is evicted for it.
 *
 * A slot whose state equals a fresh one is free. A key goes into its first bucket when that has a
 * free slot, so that most lookups find it there, and else into its second. When both are full, one
 * of their keys moves to its own other bucket, if that has room (target.c; Pagh and Rodler, "Cuckoo
 * hashing", 2001, with one step). On the way to 75 % fill 1.8 % of keys find both buckets full, and
 * six tries to move another key leave 0.005 %; then 91 % of keys are in their first bucket.
 *
 * If no key can move, a state is evicted: of the account that account.h chooses, the state that has
 * used the smallest part of its capacity, and among equals the one nearest to fresh. A state that
 * denies is evicted only for an account that is below its guarantee, and after all others. So a
 * flood of new keys makes weir forget little, and only of the flooded limit.
 *
 * But if half of an account's states or more deny, the others are spared: a new key of the same
 * account finds no room, and a new key of an account below its guarantee takes the place of a state
 * that denies. Otherwise an attacker who floods a limit with keys and uses each of them up would
 * have all other states of that limit evicted, one after the other, because only those could be
 * evicted; and when their callers return there would be no room for them. */
#ifndef WEIR_TABLE_PLACEMENT_H
#define WEIR_TABLE_PLACEMENT_H

#include "table/slot.h"

enum placement {
    PLACE_EMPTY,   /* an empty slot */
    PLACE_RECLAIM, /* one whose state is fresh */
    PLACE_EVICT,   /* one whose state is live */
    PLACE_NONE,
};

struct place {
    struct table_bucket *bucket; /* out */
    uint32_t slot;               /* out */
    uint32_t taken[2]; /* in: a bit for each slot of the two buckets that may not be used */
};

/* Finds a free slot in two locked buckets (the same one twice is legal), in the first one if
 * possible. */
enum placement placement_free(const struct weir_table *table, struct table_bucket *const pair[2],
                              uint64_t now_ns, struct place *place);

/* Finds the state to evict for a new one of these parameters when no slot is free; PLACE_EVICT or
 * PLACE_NONE. Both buckets are locked. */
enum placement placement_evict(struct weir_table_owner *owner, struct table_bucket *const pair[2],
                               uint16_t param, uint64_t now_ns, struct place *place);

/* Whether state `a` is evicted before `b`: the one that has used less is; states that deny come
 * last (or first). */
bool placement_is_before(const struct slot_view *a, const struct slot_view *b, bool denying_first);

#endif
