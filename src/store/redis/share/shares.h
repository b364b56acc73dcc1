/* SPDX-License-Identifier: Apache-2.0 */
/* All shares of one worker: a bounded table of keys, with a share.h of each hot key.
 *
 * A decision whose checks are all leased, and whose costs this worker's portions cover, is made at
 * once: one lookup and one subtraction per check. Redis is not called for it.
 *
 *   redis_shares_try ──▶ DECIDED   allowed from portions, all or nothing, or denied by the last
 *        │                         reply
 *        ├─────────────▶ EXACT     Redis decides: an operation, or a limit or a key that is not
 * leased │                         (a cold key is not: a portion for a single request is a loss)
 *        └─────────────▶ WAIT      the decision waits for a portion of one key, asked for with this
 *                                  call; when the portion arrives, the decision is tried again
 *
 * The store sends the calls that redis_shares_next returns: requests for portions that decisions
 * wait for, refills in the background (when about half is left, or when a portion's life ends
 * soon), and returns of unused portions. Each key has at most one call in flight. Each call ends
 * with redis_shares_answered or redis_shares_failed, which hand back the decisions that waited.
 *
 * How a store uses it, in each turn of the loop; `now_ns` is the turn's one reading of the engine's
 * clock (which runs with CLOCK_BOOTTIME; only differences are used):
 *
 *   submit   redis_shares_try(decision); EXACT: send its script; WAIT: keep the decision
 *   flush    while redis_shares_next(&call): share_script_write, redis_client_send
 *   reply    share_script_read, woken = redis_shares_answered(...); try each of `woken` again, in
 *            order, then as in flush
 *   timer    redis_shares_tick, then as in flush; it returns when to come again. A reply may make
 *            that earlier, so it is best called before every flush: it costs nothing then
 *   end      redis_shares_end, then as in flush, until redis_shares_busy() is 0 or time is up
 *
 * Lending (options.lends): the table of a worker in another region than the server. It makes no
 * decisions, only redis_shares_lend, which answers for one check from the portions at hand and
 * never waits. A key gets an entry when units are first taken, or are needed soon for the second
 * time: keys that come once cost no call. The round trip is measured.
 *
 * Reports of decisions made here. `remaining` is what was left over all nodes when the last reply
 * came, plus what is left of this worker's portions: others may have used some since, or hold
 * portions that they will give back. `retry_after` of a denial is from Redis' reply, less the time
 * passed since, and not before this worker asks again. `reset_after` is when the state in Redis, as
 * of the last reply, will be fresh.
 *
 * Memory: 40 bytes per key of which only the demand is known; about 700 bytes more per key with
 * portions, allocated when a key becomes hot and not by the decisions after that. keys_max bounds
 * both; the key that was idle longest makes room, and its portions are given back.
 * Threads: one table per worker, used by that worker only.
 */
#ifndef WEIR_STORE_REDIS_SHARE_SHARES_H
#define WEIR_STORE_REDIS_SHARE_SHARES_H

#include "core/check.h"
#include "store/redis/share/share.h"
#include "store/store.h"

#define REDIS_SHARES_KEY_MAX 512 /* bytes of a key's text; longer keys are decided exactly */

struct redis_shares;

struct redis_shares_options {
    uint32_t keys_max;     /* 0: 65536 */
    uint64_t life_ns;      /* the longest life of a portion; 0: 1 s */
    uint64_t holder;       /* random, not 0, below 2^53: this worker's name among all holders */
    uint64_t roundtrip_ns; /* about what a call takes; 0: 1 ms. Refills are asked for this early */
    bool lends;            /* life_ns is of no use then */
};

/* Plain values of the worker; a store copies them to where other threads read them. */
struct redis_shares_counters {
    uint64_t held;         /* keys with an entry */
    uint64_t refills;      /* calls that asked for a portion */
    uint64_t returns;      /* calls that only gave back */
    uint64_t decisions;    /* made here, allowed or denied */
    uint64_t denied;       /* of those, denied */
    uint64_t forfeited;    /* units of portions that were neither admitted nor given back */
    uint64_t roundtrip_ns; /* of calls, smoothed, where it lends */
};

/* Errors: WEIR_ERR_MEMORY; WEIR_ERR_RANGE (holder is 0 or too large, keys_max over 2^24). */
int redis_shares_open(struct redis_shares **shares, const struct redis_shares_options *options)
    __attribute__((warn_unused_result));

/* Frees the table. Portions that it holds are lost until their life ends. No call may be in flight
 * whose end is still to be reported here. */
void redis_shares_close(struct redis_shares *shares);

enum redis_shares_answer { REDIS_SHARES_EXACT, REDIS_SHARES_DECIDED, REDIS_SHARES_WAIT };

/* A decision that waits. The store embeds it in its record of a pending decision; all zeros before
 * the first try. */
struct redis_shares_wait {
    struct weir_decision *decision; /* set by redis_shares_try */
    struct redis_shares_wait *next; /* in the lists that are returned */
    struct redis_shares_wait *previous;
    void *place;  /* NULL: it does not wait */
    bool counted; /* its demand is known */
};

/* Decides from portions, if it can. DECIDED fills outcomes, verdict, delay_ns and now_ns of the
 * decision. WAIT links `wait`, which must stay where it is until it is handed back or
 * redis_shares_leave. With wait == NULL nothing is asked for (no server can answer), and the result
 * is EXACT instead of WAIT. */
enum redis_shares_answer redis_shares_try(struct redis_shares *shares,
                                          struct weir_decision *decision,
                                          struct redis_shares_wait *wait, uint64_t now_ns);

/* See weir_store_ops.lend. With `asks` false no server can answer, and nothing is fetched. */
bool redis_shares_lend(struct redis_shares *shares, enum weir_lend how, bool asks,
                       const struct weir_check *check, uint64_t now_ns,
                       struct weir_outcome *outcome, struct weir_lent *lent);
void redis_shares_put_back(struct redis_shares *shares, const struct weir_check *check,
                           const struct weir_lent *lent);

/* Removes a decision that is cancelled or whose deadline has passed. */
void redis_shares_leave(struct redis_shares *shares, struct redis_shares_wait *wait);

/* One call to send, valid until its end is reported. */
struct redis_shares_call {
    const struct weir_check *check; /* its key, tag, and limit: copies, independent of the rules */
    struct share_call ask;          /* for share_script_write, with share_script_read's answer */
    void *place;                    /* for redis_shares_answered or _failed */
};

/* The next call to be sent; false: none. */
bool redis_shares_next(struct redis_shares *shares, uint64_t now_ns,
                       struct redis_shares_call *call);

/* The call's reply came. Returns the decisions that waited for it, in order, linked by `next`
 * (NULL: none); the store tries each again. */
struct redis_shares_wait *redis_shares_answered(struct redis_shares *shares, void *place,
                                                const struct share_reply *reply, uint64_t now_ns)
    __attribute__((warn_unused_result));

/* The call ended without a valid reply. `executed`: perhaps it was executed (WEIR_ERR_IO, a
 * timeout); false: certainly not. Returns the decisions that waited for it: the store fails them.
 * They are not tried again, since each try would be another call. */
struct redis_shares_wait *redis_shares_failed(struct redis_shares *shares, void *place,
                                              bool executed) __attribute__((warn_unused_result));

/* Before redis_shares_failed, where the call was answered by an error: for a second the key gets no
 * portion. The store tries those who waited again then, and they are decided exactly. */
void redis_shares_refused(void *place, uint64_t now_ns);

/* Gives back idle and expired portions, where that is worth a call. Returns when to come again
 * (WEIR_NEVER: nothing is held). */
uint64_t redis_shares_tick(struct redis_shares *shares, uint64_t now_ns);

/* Gives back everything (shutdown, or no rule is leased any more): every later try returns EXACT.
 */
void redis_shares_end(struct redis_shares *shares);

/* Calls in flight or waiting to be sent. */
uint32_t redis_shares_busy(const struct redis_shares *shares);

const struct redis_shares_counters *redis_shares_counters(const struct redis_shares *shares);

#endif
