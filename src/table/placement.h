/* Placement: which slot a new key gets, and who has to go for it.
 *
 * A slot whose state equals a fresh one is free. A key goes into its first bucket when that has a
 * free slot, so that most lookups find it there, and else into its second. When both are full, one
 * of their keys moves to its own other bucket, if that has room (relocate.c; Pagh and Rodler,
 * "Cuckoo hashing", 2001, with one step). On the way to 75 % fill 1.8 % of keys find both buckets
 * full, and six tries to move somebody leave 0.005 %; then 91 % of keys are in their first bucket.
 *
 * Where nobody can move, the state nearest to fresh goes, among those that would admit a cost of 1.
 * When all deny, nobody goes.
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

/* Finds a free slot in two buckets (the same one twice is legal), both locked: the first one's
 * first.
 */
enum placement placement_free(const struct weir_table *table, struct table_bucket *const pair[2],
                              uint64_t now_ns, struct place *place);

/* Finds who has to go where none is free. */
enum placement placement_evict(const struct weir_table *table, struct table_bucket *const pair[2],
                               uint64_t now_ns, struct place *place);

/* The slot of two buckets whose parameters are `param` (with PARAM_SHARED or not) and that is
 * furthest from fresh (`last`) or nearest to it; -1: there is none that is live. */
int placement_find_param(const struct weir_table *table, struct table_bucket *const pair[2],
                         uint16_t param, uint64_t now_ns, bool last, struct place *place);

#endif
