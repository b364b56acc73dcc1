/* SPDX-License-Identifier: Apache-2.0 */
/* What one assignment of Envoy's quota service (RLQS) may admit, and what is charged for it before
 * it is sent: pure arithmetic.
 *
 * Concept. An assignment is a token bucket that a client fills by itself: at most m tokens, r
 * tokens in WEIR_QUOTA_FILL_MS, until it expires. It is a portion of each limit that its bucket
 * meets, in the sense of store/redis/share/share.h: given at g, never spent after its end e, and
 * charged as if all that it can admit were used. It is sent at once; a client may apply it late,
 * but within WEIR_QUOTA_LATE_MS after g, so e = g + time to live + WEIR_QUOTA_LATE_MS. A PING
 * behind the assignment that is not answered by g + WEIR_QUOTA_LATE_MS ends the stream.
 *
 *   assignment   Envoy                         charged (P: the time from g until the end)
 *   first        starts with m tokens          floor(m + r P)
 *   equal        is prolonged, keeps its       windows: what r adds, floor to floor
 *                tokens                        buckets: floor(m + r (e2 - e1))
 *   changed      starts with m tokens          ceil(m + r2 (e2 - e1) + max(0, r2 - r1) (e1 - g2))
 *
 * Why the sum over all clients stays below the bound of the algorithm. Take an interval [s, t] and
 * the portions with e >= s and g <= t, the only ones that admit in it. A client's tokens at s are
 * at most the m of the portion in force, which counts, as its e >= s. Each later start with m
 * tokens belongs to a portion given in [s, t]. At a time x the client's bucket fills at the rate of
 * some portion i in force; the portions that count are charged for at least that rate at x: the one
 * whose (e[j-1], e[j]] holds x with r[j], and each later one up to i with the part by which its
 * rate is higher. So the charges of the portions that count cover all that is admitted in [s, t],
 * and share.h shows that charges below the bound are enough. A window's portions are all given and
 * ended in one segment, so that tokens which an equal assignment keeps are charged in it already.
 * floor is enough where a portion has a start or an m of its own beside the tokens that it keeps
 * (m >= 1), because whole requests are admitted. A denying assignment admits nothing and leaves
 * the portion before it as it is.
 *
 * Buckets (token_bucket, gcra, leaky_bucket). The charge has to be made as of e: TAT' = max(TAT, e)
 * + c T. It is made as an ordinary decision with a higher cost: c + ceil((e - max(TAT, now)) / T),
 * with the TAT of a peek before. A TAT that grows between the two makes the charge higher than
 * necessary, never lower.
 *
 * Two clocks. The life of an assignment runs by this node's monotonic clock; states, segments and
 * TATs have the clock of their store: Redis' own, or the table's, which is this node's. Their
 * readings are never compared. A peek that was sent at p and answered at n, both by this node's
 * clock, was made at the store's time x, somewhere between the two. So what the store calls x + d
 * comes at p + d here at the earliest, and that is how its times are read (struct
 * weir_quota_moment). The plan is made at n, and the charge is sent after that. The clocks may run
 * at rates that differ by 1/1000, as in store/redis/share/share.h: over the longest life, 6 s, and
 * the time to write, that is less than WEIR_QUOTA_DRIFT_MS.
 *
 *   here    p ───────────── n ── charge sent ─────────── answered by n + WEIR_QUOTA_CHARGE_MS ──▶ e
 *   store         x                           x2
 *
 *   - A bucket reaches e. By the store's clock e is at most x + (e - p) and at most x2 + (e - n),
 *     with the drift; so the charge counts from the later of n and p + (TAT - x). It is made at x2
 *     and finds a TAT that is the same or has grown.
 *   - A window's portion ends in its segment: e is at most p + (end of the segment - x), less the
 *     drift. The charge is made in the same segment, because the plan is of 2 s at least, and a
 *     charge that takes longer than WEIR_QUOTA_CHARGE_MS is not sent.
 *   - A share that is prolonged was charged in the segment of this charge: it ends before its
 *     segment does. So if x were in a later one, it would have ended by n, and all of the new share
 *     would be charged.
 *   - If the store's clock has jumped between the two calls, or another server has taken its place,
 *     the charge may be too small: weir_quota_holds compares x and x2, which are readings of one
 *     clock, and refuses a charge that was made before x or in another segment.
 *   - What is refused, or answered late, is not sent and stays charged.
 *
 * Other events (a state that is forgotten, given back or reset between the two calls, and a step of
 * the store's clock) have the effect that share.h names for any portion, for 6 s.
 *
 * Limits. Windows with segments of WEIR_QUOTA_SEGMENT_MIN_MS at least; buckets whose depth is
 * WEIR_QUOTA_DEPTH_MIN_MS at least. Other limits cannot be assigned: their states have no portions
 * that outlast a second.
 *
 * Threads: pure functions.
 */
#ifndef WEIR_FEATURE_ENVOY_SERVER_QUOTA_SHARE_H
#define WEIR_FEATURE_ENVOY_SERVER_QUOTA_SHARE_H

#include <stdbool.h>
#include <stdint.h>
#include <weir/limit.h>

#include "wire/grpc/quota.h"

#define WEIR_QUOTA_FILL_MS (WEIR_GRPC_QUOTA_FILL_S * 1000)
#define WEIR_QUOTA_TTL_S 5
#define WEIR_QUOTA_RENEW_MS (WEIR_QUOTA_TTL_S * 500) /* between two assignments: half of one */
/* From the charge until the PING behind the assignment is answered. */
#define WEIR_QUOTA_LATE_MS 1000
/* An assignment that is not charged and written so long after its plan is not sent. */
#define WEIR_QUOTA_CHARGE_MS 500
/* How far a store's clock, where it is not this node's, may move away during an assignment. */
#define WEIR_QUOTA_DRIFT_MS 10
/* Three of the longest portions and more: the end of a segment costs up to 2 s. */
#define WEIR_QUOTA_SEGMENT_MIN_MS 20000
/* Two of the longest portions. */
#define WEIR_QUOTA_DEPTH_MIN_MS 12000
/* The highest rate of one assignment, per fill, and the tokens that it keeps at most: a tenth of a
 * second's, and one. With a single one, what fills while a request is awaited would be lost. */
#define WEIR_QUOTA_PER_FILL_MAX 1000000000
#define WEIR_QUOTA_TOKENS_PART 100

/* What a client holds. All zero: nothing. */
struct weir_quota_share {
    uint32_t max_tokens, per_fill;
    uint64_t started_ms; /* when its tokens were full */
    uint64_t ends_ms;    /* nothing of it is admitted later */
    uint64_t expires_ms; /* when the client lets it, or the denial, expire at the earliest */
    bool denied;         /* a denying assignment came after it */
};

/* What one limit can give, at one time. Times are this node's. */
struct weir_quota_supply {
    bool bucket;        /* else a window */
    uint64_t unit;      /* what one request costs: above 0 */
    uint64_t remaining; /* the largest cost that would be admitted */
    uint64_t end_ms;    /* windows: when the segment ends */
    uint64_t spread_ms; /* windows: over what time the rest may be used up; above 0 */
    uint64_t fresh_ms;  /* buckets: when the state will be fresh (TAT) */
    uint64_t rate;      /* N and W of the limit */
    uint64_t window_ms;
    uint32_t drift_ms; /* as of the moment of the peek */
};

/* Whether portions of a limit can be assigned. */
bool weir_quota_assignable(const struct weir_limit *limit);

/* A moment of a store: when it was `store_ns` there, it was `local_ns` here, or later. */
struct weir_quota_moment {
    uint64_t store_ns, local_ns;
    uint32_t drift_ms; /* WEIR_QUOTA_DRIFT_MS; 0: it is one clock */
};

/* The supply of an assignable limit, as a peek at a moment reports it; `unit` above 0. Its times
 * are this node's. */
struct weir_quota_supply weir_quota_supply_of(const struct weir_limit *limit,
                                              const struct weir_report *report, uint64_t unit,
                                              const struct weir_quota_moment *moment);

/* Whether a charge that the store made at `charged_ns` covers what was planned by a peek that it
 * made at `peeked_ns`. */
bool weir_quota_holds(const struct weir_limit *limit, uint64_t peeked_ns, uint64_t charged_ns);

/* What a supply gives in WEIR_QUOTA_FILL_MS from now on, in thousandths of a request: the rest of a
 * window over the rest of its segment (at most spread_ms), a bucket's rate and a part of what it
 * has saved. `held` is what clients hold of it and have not used: thousandths of a request. */
uint64_t weir_quota_supply_rate(const struct weir_quota_supply *supply, uint64_t held,
                                uint64_t now_ms);

/* What a supply gives in WEIR_QUOTA_FILL_MS for as long as you like, in thousandths of a request.
 */
uint64_t weir_quota_supply_steady(const struct weir_quota_supply *supply);

/* The rest of a share, in thousandths of a request. */
uint64_t weir_quota_share_rest(const struct weir_quota_share *share, uint64_t now_ms);

enum weir_quota_move {
    WEIR_QUOTA_WAIT, /* nothing is sent: what is held lasts, or nothing can be charged yet */
    WEIR_QUOTA_EQUAL,
    WEIR_QUOTA_CHANGED, /* the first assignment too */
    WEIR_QUOTA_DENY,
};

struct weir_quota_plan {
    enum weir_quota_move move;
    struct weir_quota_share share; /* EQUAL, CHANGED: what the client then holds */
    uint32_t ttl_s;
    uint64_t again_ms; /* WAIT, DENY: when there may be more; 0: unknown */
};

/* Plans the next assignment of a client that wants `per_fill` requests (at least 1) in
 * WEIR_QUOTA_FILL_MS: all of them, or as many as the supplies (1 at least) allow. costs[0..count)
 * are what the supplies are to be charged, by one decision: nothing is sent unless all are.
 * `now_ms`: when the answer to the peek was there. */
void weir_quota_plan(struct weir_quota_plan *plan, const struct weir_quota_share *held,
                     const struct weir_quota_supply *supplies, uint32_t count, uint64_t per_fill,
                     uint64_t now_ms, uint64_t *costs);

#endif
