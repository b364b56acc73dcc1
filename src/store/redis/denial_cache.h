/* SPDX-License-Identifier: Apache-2.0 */
/* The negative cache of denials: a decision that was just denied is denied again without a call.
 *
 * A denial of the server holds until the first of the checks that deny would admit, unless units
 * are given back. So the same decision (the same checks, costs, scales, flags and parameters of the
 * limits) is answered from memory for that long, at most for 100 ms, which bounds how long a node
 * may not know of a refund or reset at another node. Those made through this store are known at
 * once. The time counts from when the call was sent, which is before the server's time of its
 * decision: nothing is denied that the server would have admitted.
 *
 * Not remembered: what was charged although it was denied (`on_deny: charge`, or another check of
 * an EACH policy), idempotency records, peeks, and denials by a concurrency limit, which end with
 * any release.
 *
 * Memory: records follow each other in a ring, found by an index of positions; an old
 * record is overwritten when its turn comes, and another of the same index entry replaces it. 160
 * bytes a record is what the ring is sized for, 8 in the index; touched only as far as it is used.
 * Keeping and finding allocate nothing. Decisions are distinguished by 128 bits of keyed hash.
 *
 * Threads: one owner. Time is an argument: any monotonic nanoseconds, always the same.
 */
#ifndef WEIR_STORE_REDIS_DENIAL_CACHE_H
#define WEIR_STORE_REDIS_DENIAL_CACHE_H

#include "core/check.h"

#define REDIS_DENIAL_CACHE_MAX_NS UINT64_C(100000000)

struct redis_denial_cache;

struct redis_denial_cache_options {
    uint32_t records;    /* of a usual size; at least 1 */
    uint64_t longest_ns; /* 0, or above REDIS_DENIAL_CACHE_MAX_NS: that */
    uint64_t secret[2];  /* of the hash */
};

/* Errors: WEIR_ERR_MEMORY. */
int redis_denial_cache_open(struct redis_denial_cache **denials,
                            const struct redis_denial_cache_options *options)
    __attribute__((warn_unused_result));
void redis_denial_cache_close(struct redis_denial_cache *denials);

/* Whether the decision was denied just before. Then it is decided: outcomes as they were, with the
 * time since taken into account. */
bool redis_denial_cache_find(struct redis_denial_cache *denials, struct weir_decision *decision,
                             uint64_t now_ns);

/* Remembers a finished decision of the server, if it is one to be remembered. `sent_ns` is when it
 * was asked, `now_ns` when decision->now_ns was the server's time, or later. */
void redis_denial_cache_keep(struct redis_denial_cache *denials,
                             const struct weir_decision *decision, uint64_t sent_ns,
                             uint64_t now_ns);

/* Something was given back to the states of these checks: forgets their denials (and perhaps those
 * of a few other keys). To be called before and after it is done, when it is not known when. */
void redis_denial_cache_forget(struct redis_denial_cache *denials,
                               const struct weir_decision *decision);

#endif
