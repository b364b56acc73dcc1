/* SPDX-License-Identifier: Apache-2.0 */
/* One decision: the set of a source, and the part of the filter that runs under the set's lock.
 * User space compiles it for tests.
 *
 * Placement is that of the table (table/placement.h) within one set: the state of the key; else a
 * state that is fresh; else, of those that do not deny, the one that has used the smallest part of
 * its limit, to 1/65536 and a factor of two. A state that denies is never evicted: a flood of
 * sources cannot pardon one. A new key without room is not charged.
 *
 * Threads: the caller holds the lock of a set.
 */
#ifndef WEIR_FEATURE_XDP_TAKE_H
#define WEIR_FEATURE_XDP_TAKE_H

#include "core/text/siphash.h"
#include "feature/xdp/filter.h"
#include "feature/xdp/packet.h"

/* A bit each, so that the filter can collect answers without a branch. */
enum xdp_taken { XDP_NOT_MET = 0, XDP_ADMITTED = 1, XDP_DENIED = 2, XDP_NO_ROOM = 4 };

/* What is decided: of the limit at `slot` of `limits`, at now_ns, a cost of `time`. */
struct xdp_take {
    const struct xdp_limit *limits; /* XDP_LIMITS_MAX */
    const struct xdp_limit *limit;
    struct bucket_time time;
    uint64_t key, now_ns;
    uint64_t *rems; /* XDP_WAYS, of the set; NULL: every limit is plain */
};

/* The key of a state, from its hash. */
XDP_INLINE uint64_t way_key(uint64_t hash, const struct xdp_limit *limit, uint32_t slot)
{
    return (hash & ~(XDP_WAY_GENERATION | XDP_WAY_SLOT)) | XDP_WAY_USED |
           (uint64_t)limit->generation << XDP_WAY_GENERATION_SHIFT | slot;
}

/* The hash of a source: SipHash of the bytes of its address that may count, 4, 8 or 16, so that the
 * sources of one size never meet those of another. */
XDP_INLINE uint64_t source_hash(const struct xdp_limit *limit, const struct xdp_packet *packet)
{
    struct siphash state = siphash_begin(limit->secret);
    const uint32_t *source = packet->source;
    uint64_t last;

    if (packet->family == 4) {
        last = siphash_last(source[3] & limit->mask[0][3], 4);
    } else {
        const uint32_t *mask = limit->mask[1];

        siphash_absorb(&state, (source[0] & mask[0]) | (uint64_t)(source[1] & mask[1]) << 32);
        if (limit->long6)
            siphash_absorb(&state, (source[2] & mask[2]) | (uint64_t)(source[3] & mask[3]) << 32);
        last = siphash_last(0, limit->long6 ? 16 : 8);
    }
    siphash_absorb(&state, last);
    return siphash_finish(&state);
}

/* Scores order the states of a set: 0 fresh, then by the part used; those that deny have the
 * highest bit. Computed without branches, which the kernel's verifier would multiply over the ways.
 * All times are below 2^63, so that the highest bit of a difference is its sign. */
#define WAY_DENIES (1ULL << 60)

XDP_INLINE uint64_t way_score(const struct xdp_take *take, uint64_t key, uint64_t tat_ns,
                              uint64_t rem)
{
    const struct xdp_limit *limit = &take->limits[key & XDP_WAY_SLOT];
    uint64_t counts = packet_is_zero(/* else it is of a limit that was replaced */
                                     ((key & XDP_WAY_GENERATION) >> XDP_WAY_GENERATION_SHIFT) ^
                                     limit->generation);
    /* 0: the bucket owes nothing */
    uint64_t late = (1 - ((tat_ns - take->now_ns) >> 63)) & counts;
    uint64_t owed_ns = (tat_ns - take->now_ns) & (0 - late);
    uint64_t owed_rem = rem & (0 - late) & ((uint64_t)limit->limit.plain - 1);
    /* owed > slack, as a subtraction with borrow. */
    uint64_t borrow = (limit->slack.rem - owed_rem) >> 63;
    uint64_t denies = (limit->slack.ns - owed_ns - borrow) >> 63;
    uint64_t used = (owed_ns >> (limit->score_shift & 63)) & (WAY_DENIES - 1) >> 1;

    return late + used + denies * WAY_DENIES;
}

/* A key of the set, of which `first` is the first one. */
XDP_INLINE uint64_t set_key(const struct xdp_set *set, uint64_t first, uint64_t i)
{
    return i == 0 ? first : set->keys[i];
}

/* The way that has the key; XDP_WAYS or more: none. */
XDP_INLINE uint64_t set_find(const struct xdp_take *take, const struct xdp_set *set, uint64_t first)
{
    uint64_t found = XDP_WAYS;

    for (uint64_t i = 0; i < XDP_WAYS; i++) {
        uint64_t other = take->key ^ set_key(set, first, i);

        found -= (XDP_WAYS - i) & (((other | (0 - other)) >> 63) - 1);
    }
    return found;
}

/* The way to be replaced by a new key; XDP_WAYS or more: no room. */
XDP_INLINE uint64_t set_room(const struct xdp_take *take, const struct xdp_set *set, uint64_t first)
{
    uint64_t least = UINT64_MAX >> 1;

    for (uint64_t i = 0; i < XDP_WAYS; i++) {
        uint64_t score = way_score(take, set_key(set, first, i), set->tats_ns[i],
                                   take->rems ? take->rems[i] : 0);
        uint64_t candidate = score << 2 | i, difference = candidate - least;

        least += difference * packet_sign(difference); /* the smaller one of both */
    }
    return least >> 62 << 2 | (least & (XDP_WAYS - 1));
}

XDP_INLINE struct weir_cell set_cell(const struct xdp_take *take, const struct xdp_set *set,
                                     uint64_t i)
{
    uint64_t fraction = (uint64_t)take->limit->limit.plain - 1; /* none, or all bits */

    return (struct weir_cell){set->tats_ns[i], take->rems ? take->rems[i] & fraction : 0};
}

XDP_INLINE void set_put(const struct xdp_take *take, struct xdp_set *set, uint64_t i,
                        const struct weir_cell *cell)
{
    set->tats_ns[i] = cell->a;
    if (take->rems)
        take->rems[i] = cell->b;
}

/* Charges the bucket *cell, if it admits. */
XDP_INLINE bool way_take(const struct xdp_take *take, struct weir_cell *cell)
{
    uint64_t tat_ns = cell->a, delay_ns;
    bool admitted;

    if (take->rems)
        return bucket_take_time(&take->limit->limit, cell, take->now_ns, take->time, &delay_ns);
    admitted = bucket_take_plain_time(&take->limit->limit, &tat_ns, take->now_ns, take->time.ns);
    cell->a = tat_ns;
    return admitted;
}

/* Decides in a set that the caller has locked. *first is its first key, which the caller writes
 * back. */
XDP_INLINE enum xdp_taken set_take(const struct xdp_take *take, struct xdp_set *set,
                                   uint64_t *first)
{
    uint64_t i = set_find(take, set, *first);
    struct weir_cell cell = {0, 0};

    if (i < XDP_WAYS) {
        cell = set_cell(take, set, i);
        if (!way_take(take, &cell))
            return XDP_DENIED;
    } else {
        i = set_room(take, set, *first);
        if (i >= XDP_WAYS)
            return XDP_NO_ROOM;
        if (!way_take(take, &cell))
            return XDP_DENIED; /* and nothing is evicted for it */
        if (i == 0)
            *first = take->key;
        else
            set->keys[i] = take->key;
    }
    set_put(take, set, i, &cell);
    return XDP_ADMITTED;
}

/* Gives back what set_take has charged, unless the state was evicted meanwhile. */
XDP_INLINE void set_refund(const struct xdp_take *take, struct xdp_set *set, uint64_t first)
{
    uint64_t i = set_find(take, set, first);

    if (i >= XDP_WAYS)
        return;

    struct weir_cell cell = set_cell(take, set, i);
    struct bucket_time owed = bucket_owed(&cell, take->now_ns);

    if (bucket_time_less(take->time, owed))
        owed = bucket_time_subtract(&take->limit->limit, owed, take->time);
    else
        owed = (struct bucket_time){0, 0};
    bucket_owe(&cell, take->now_ns, owed);
    set_put(take, set, i, &cell);
}

#endif
