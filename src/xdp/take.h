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

/* A bit each, so that the filter can collect answers without a branch. */
enum xdp_taken { XDP_NOT_MET = 0, XDP_ADMITTED = 1, XDP_DENIED = 2, XDP_NO_ROOM = 4 };

/* What is decided: of the limit at `slot` of `limits`, at now_ns, a cost of `time`. */
struct xdp_take {
    const struct xdp_limit *limits; /* XDP_LIMITS_MAX */
    const struct xdp_limit *limit;
    struct bucket_time time;
    uint64_t key, now_ns;
};

/* The key of a state, from its hash. */
XDP_INLINE uint64_t way_key(uint64_t hash, const struct xdp_limit *limit, uint32_t slot)
{
    return (hash & ~(XDP_WAY_GENERATION | XDP_WAY_SLOT)) |
           (uint64_t)limit->generation << XDP_WAY_GENERATION_SHIFT | slot;
}

/* Scores order the states of a set: 0 fresh, then by the part used; those that deny have the
 * highest bit. Computed without branches, which the kernel's verifier would multiply over the ways.
 * All times are below 2^63, so that the highest bit of a difference is its sign. */
#define WAY_DENIES (1ULL << 60)

XDP_INLINE uint64_t way_score(const struct xdp_take *take, const struct xdp_way *way)
{
    const struct xdp_limit *limit = &take->limits[way->key & XDP_WAY_SLOT];
    uint64_t counts = packet_is_zero(/* else it is of a limit that was replaced */
                                     ((way->key & XDP_WAY_GENERATION) >> XDP_WAY_GENERATION_SHIFT) ^
                                     limit->generation);
    /* 0: the bucket owes nothing */
    uint64_t late = (1 - ((way->cell.a - take->now_ns) >> 63)) & counts;
    uint64_t owed_ns = (way->cell.a - take->now_ns) & (0 - late);
    uint64_t owed_rem = way->cell.b & (0 - late);
    /* owed > slack, as a subtraction with borrow. */
    uint64_t borrow = (limit->slack.rem - owed_rem) >> 63;
    uint64_t denies = (limit->slack.ns - owed_ns - borrow) >> 63;
    uint64_t used = (owed_ns >> (limit->score_shift & 63)) & (WAY_DENIES - 1) >> 1;

    return late + used + denies * WAY_DENIES;
}

/* The way that has the key; XDP_WAYS or more: none. */
XDP_INLINE uint64_t ways_with_key(const struct xdp_take *take, const struct xdp_way ways[XDP_WAYS])
{
    uint64_t found = XDP_WAYS;

    for (uint64_t i = 0; i < XDP_WAYS; i++) {
        uint64_t other = take->key ^ ways[i].key;

        found -= (XDP_WAYS - i) & (((other | (0 - other)) >> 63) - 1);
    }
    return found;
}

/* The way to be replaced by a new key; XDP_WAYS or more: no room. */
XDP_INLINE uint64_t ways_with_room(const struct xdp_take *take, const struct xdp_way ways[XDP_WAYS])
{
    uint64_t least = UINT64_MAX >> 1;

    for (uint64_t i = 0; i < XDP_WAYS; i++) {
        uint64_t candidate = way_score(take, &ways[i]) << 2 | i;
        uint64_t difference = candidate - least;

        least += difference & (0 - (difference >> 63)); /* the smaller one of both */
    }
    return least >> 62 << 2 | (least & (XDP_WAYS - 1));
}

XDP_INLINE enum xdp_taken ways_take(const struct xdp_take *take, struct xdp_way ways[XDP_WAYS])
{
    uint64_t i = ways_with_key(take, ways);
    uint64_t delay_ns;

    if (i >= XDP_WAYS)
        i = ways_with_room(take, ways);
    if (i >= XDP_WAYS)
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
