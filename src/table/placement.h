/* Placement: which slot a new key gets, and who has to go for it.
 *
 * A key goes into its first bucket while that has fewer than FIRST_ENOUGH states that are not
 * fresh, so that most lookups find it there, and else into the less loaded of its two. With 3, 0.07
 * % of keys find both buckets full on the way to 75 % fill, and 77 % of keys are in their first
 * bucket; with 2 it is 0.05 % and 73 %, with 4 already 0.16 %.
 *
 * A slot whose state equals a fresh one is free. When there is none in either bucket, the state
 * nearest to fresh goes, among those that would admit a cost of 1. When all deny, nobody goes.
 */
#ifndef WEIR_TABLE_PLACEMENT_H
#define WEIR_TABLE_PLACEMENT_H

#include "table/region.h"

enum placement {
    PLACE_EMPTY,   /* a slot that nobody has */
    PLACE_RECLAIM, /* one whose state is fresh */
    PLACE_EVICT,   /* one whose state is live but not denying */
    PLACE_NONE,
};

struct place {
    struct table_bucket *bucket; /* out */
    uint32_t slot;               /* out */
    uint32_t taken[2];           /* in: slots of the two buckets that are not to be had */
};

/* Chooses a slot in one of two buckets (the same one twice is legal), both locked. */
enum placement placement_choose(const struct weir_table *table, struct table_bucket *const pair[2],
                                uint64_t now_ns, struct place *place);

/* The slot of two buckets whose parameters are `param` (with PARAM_SHARED or not) and that is
 * furthest from fresh (`last`) or nearest to it; -1: there is none that is live. */
int placement_find_param(const struct weir_table *table, struct table_bucket *const pair[2],
                         uint16_t param, uint64_t now_ns, bool last, struct place *place);

#endif
