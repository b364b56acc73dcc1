/* SPDX-License-Identifier: Apache-2.0 */
/* One decision on a set of states: the part of the filter that runs under the set's lock. User
 * space compiles it for tests.
 *
 * Placement is that of the table (table/placement.h) within one set: the state of the key; else a
 * state that is fresh; else, of those that do not deny, the one that has used the smallest part of
 * its limit, to 1/65536 and a factor of two. A state that denies is never evicted: a flood of
 * sources cannot pardon one. A new key without room is not charged.
 *
 * Threads: the caller holds the set's lock.
 */
#ifndef WEIR_XDP_TAKE_H
#define WEIR_XDP_TAKE_H

#include "xdp/filter.h"
#include "xdp/packet.h"

enum xdp_taken { XDP_ADMITTED, XDP_DENIED, XDP_NO_ROOM };

/* What is decided: of the limit at `slot` of `limits`, at now_ns, a cost of `time`. */
struct xdp_take {
    const struct xdp_limit *limits; /* XDP_LIMITS_MAX */
    const struct xdp_limit *limit;
    struct bucket_time time;
    uint64_t key, now_ns;
};

/* How late a state is evicted: UINT64_MAX never, 0 it is fresh. */
XDP_INLINE uint64_t way_score(const struct xdp_limit *limits, const struct xdp_way *way,
                              uint64_t now_ns)
{
    struct bucket_time owed = bucket_owed(&way->cell, now_ns);
    const struct xdp_limit *limit = &limits[way->key & XDP_WAY_SLOT];

    if (owed.ns == 0 && owed.rem == 0)
        return 0;
    if (bucket_time_less(limit->slack, owed))
        return UINT64_MAX;
    return (owed.ns >> (limit->score_shift & 63)) + 1;
}

/* The way for `take->key`, whose state may be another key's, to be replaced. -1: no room. */
XDP_INLINE int ways_find(const struct xdp_take *take, const struct xdp_way ways[XDP_WAYS])
{
    uint64_t least = UINT64_MAX;
    int found = -1;

    for (int i = 0; i < XDP_WAYS; i++)
        if (ways[i].key == take->key)
            return i;
    for (int i = 0; i < XDP_WAYS; i++) {
        uint64_t score = way_score(take->limits, &ways[i], take->now_ns);

        if (score < least) {
            least = score;
            found = i;
        }
    }
    return found;
}

XDP_INLINE enum xdp_taken ways_take(const struct xdp_take *take, struct xdp_way ways[XDP_WAYS])
{
    int i = ways_find(take, ways);
    uint64_t delay_ns;

    if (i < 0)
        return XDP_NO_ROOM;

    struct xdp_way *way = &ways[i & (XDP_WAYS - 1)];
    struct weir_cell cell = {0, 0};

    if (way->key == take->key)
        cell = way->cell;
    if (!bucket_take_time(&take->limit->limit, &cell, take->now_ns, take->time, &delay_ns))
        return XDP_DENIED; /* and nothing is evicted for it */
    *way = (struct xdp_way){.key = take->key, .cell = cell};
    return XDP_ADMITTED;
}

/* Gives back what ways_take has charged, unless the state was evicted meanwhile. */
XDP_INLINE void ways_refund(const struct xdp_take *take, struct xdp_way ways[XDP_WAYS])
{
    for (int i = 0; i < XDP_WAYS; i++) {
        if (ways[i].key != take->key)
            continue;

        struct bucket_time owed = bucket_owed(&ways[i].cell, take->now_ns);

        if (bucket_time_less(take->time, owed))
            owed = bucket_time_subtract(&take->limit->limit, owed, take->time);
        else
            owed = (struct bucket_time){0, 0};
        bucket_owe(&ways[i].cell, take->now_ns, owed);
    }
}

#endif
