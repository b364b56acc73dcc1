/* SPDX-License-Identifier: Apache-2.0 */
/* One holder's share of one key's budget: a state machine without I/O, clock or allocation.
 *
 * A holder (a worker of a node) takes portions of a key's budget from Redis in advance and admits
 * requests from them without asking. All that it holds of a key is its share of that key. This
 * header says what a holder may do, lua/share.lua what Redis does; the test share_explore walks
 * through every order of their steps.
 *
 * The protocol
 *
 *   A call carries an id, larger than all earlier ids of this holder. It asks for `need`..`want`
 *   units as a portion in one of two places, and it settles portions that the holder has closed:
 *   "of portion X, U units were admitted, and no more will be". Redis takes the rest of a settled
 *   portion back, gives a new one, and keeps the last id and both portions of each holder.
 *   - Redis refuses a call whose id is not above the holder's last one, so a repeated or overtaken
 *     call does nothing. A settlement names a portion by its id, and Redis' record drops a portion
 *     when it is settled or its place is given anew. So nothing is given back twice.
 *   - A portion is settled only after it was closed, and a closed portion is never spent again. So
 *     units that are given back are never admitted.
 *   - A call whose end is unknown may have been executed. Its portion is never spent, whatever
 * reply comes later; the next call settles it as "0 used". What such a call settled is not settled
 *     again: it is forfeited if the call was lost on its way to Redis.
 *   - There are two places, so that one portion is in use while the next is on its way. A holder
 * has one call in flight at a time.
 *
 * Time. Redis gives a portion at its time g, until its time e. The holder counts e - g from when it
 * SENT the call, on its own clock, and stops a margin earlier: 1/1000 of it and 1 ms. The call was
 * executed after it was sent, so the holder stops before e as long as its clock and the server's
 * run at rates that differ by less than 1/1000 (NTP slews by 1/2000 at most). The readings of the
 * clocks do not matter. (A decision is made at the time of its turn of the loop. A process that is
 * stopped within a turn therefore admits, when it continues, by the time that the turn had read, as
 * any server would.) A step of the server's clock has the same effect as in exact mode, but a
 * portion lives on under the old reading until its life ends, 1 s at most. A step forward by more
 * than that, as in a failover to a server whose clock is ahead, gives the new segment's budget
 * early (in exact mode too), and the portions in use come on top. After a step back, states answer
 * as of the latest time they have seen; portions count in the segment that they know, and buckets
 * are further from fresh.
 *
 * What is charged when a portion of c units is given at g until e, and why the sum over all holders
 * and exact decisions never exceeds what the algorithm promises (used units of a portion j: c_j):
 *
 *   Windows (fixed, sliding, segments). The portion is tested and charged at g as an exact decision
 *   of cost c is, and e is not after the end of g's segment. Take any admission, at t in segment i,
 *   and the last charge g* <= t in that segment. All that was admitted in i until t, itself
 *   included, is covered by units charged in i by then and not returned; g* was tested with all of
 *   them, and with older segments that weighed at least as much as they do at t. So the exact
 *   algorithm, fed with the admissions alone, would have admitted this one: leased mode admits only
 *   what exact mode could. A return lowers the counter of the segment that was charged, by units
 *   that were not and will not be admitted, so it may come at any time.
 *
 *   sliding_log. The portion's entry is dated e, not g. Let (x - W, x] be a window. A portion that
 *   admitted in it has e_j > x - W and g_j <= x. When the last of them was given, at g*, all were
 *   counted (e_j > x - W >= g* - W), and the sum was at most N. But a log whose newest entry is at
 *   e decides as of e, and would forget entries of (g - W, e - W] too early. So e stays below the
 *   oldest counted entry's end, oldest + W: as of e and as of g, the same entries count.
 *
 *   Buckets. TAT' = max(TAT, e) + c*T, given only while TAT' - g <= depth. For an interval [s, t]
 *   look at the portions with e_j >= s and g_j <= t, the only ones that can admit in it, in the
 *   order given: TAT after the last of them, at g*, is at least s + sum(c_j)*T and at most
 *   g* + depth, so sum(c_j)*T <= depth + (t - s): the bucket's own bound. (An exact decision is a
 *   portion with e = g.) A return of u units subtracts u*T. That keeps
 *   TAT >= s + sum(c_j, e_j >= s)*T for all s <= e_j, where the sum shrinks as well; for a later s
 *   it does not. So a return is taken only while the server's time is not after e_j and no portion
 *   of the key ends after e_j; otherwise it is forfeited, which costs no more than u*T of
 * refilling. e - g is an eighth of the depth, or longer where that is free: up to TAT - g.
 *
 *   Never leased: concurrency and leaky_queue (they do not give a number of units), and limits
 *   too small or too short to be split (share_terms_init). They are decided exactly.
 *
 *   Other events that change a state. A reload changes a limit: portions given under the old limit
 *   stay good for their life; a holder that sees another limit closes its portions first, and a
 *   bucket takes nothing back that was given under another rate. An administrator forgets a state
 *   (WEIR_OP_RESET) or Redis evicts it: portions in use stay good, and what comes back of them
 *   within their life is taken off what others have used since, once. A refund (WEIR_OP_REFUND) of
 *   a bucket is not held back as a return is. Each of these lets pass at most the units in use at
 *   that moment, on top of what exact mode would.
 *
 * Holders in another region than the server (share_terms_lend) keep the same rules with longer
 * lives, up to 10 s. Where this header says 1 s, read 10 s for them. They decide nothing exactly:
 * what their portions do not cover is denied.
 *
 * What a crash costs. The holder's portions stay charged and are not admitted: at most
 * SHARE_PORTIONS of them, each for the demand of share_terms.horizon_ns (100 ms at most), or
 * share_terms.batch, 64 units or a sixteenth of the limit, where that is more. A bucket regains
 * them as it refills; a window when their segment leaves it. No other node has to detect the crash.
 *
 * A bucket's portion that ends before it is used up is lost likewise. A portion therefore serves an
 * eighth of its life at most, and a key with fewer than eight decisions in a life is decided
 * exactly.
 *
 * What else leasing costs. Units in one holder's share are not available to another: a decision may
 * be denied although the nodes together have not used everything. Idle portions go back after a
 * quarter of their life; test_share_demand has the figures. Where the budget trickles, holders ask
 * once in a while (share_terms.pause_ns) and not for each unit. A full bucket admits a burst less
 * by e - g, an eighth.
 */
#ifndef WEIR_STORE_REDIS_SHARE_SHARE_H
#define WEIR_STORE_REDIS_SHARE_SHARE_H

#include <stdbool.h>
#include <stdint.h>
#include <weir/limit.h>

#include "store/store.h"

#define SHARE_PORTIONS WEIR_LENT_PORTIONS

/* A limit below either is decided exactly. */
#define SHARE_CAPACITY_MIN 50
#define SHARE_SPAN_MIN_NS UINT64_C(50000000) /* a segment, a bucket's depth, a log's window */

#define SHARE_LIFE_MAX_NS UINT64_C(1000000000)
/* Of a holder in another region than the server. */
#define SHARE_LENT_LIFE_MAX_NS UINT64_C(10000000000)
/* A shorter life is not worth a portion: the margin and a round trip would use it up. */
#define SHARE_LIFE_MIN_NS UINT64_C(4000000)
#define SHARE_MARGIN_NS UINT64_C(1000000)
#define SHARE_DRIFT 1000

/* The longest time that a denial is answered from memory. */
#define SHARE_DRY_MAX_NS UINT64_C(100000000)

/* What a limit allows its portions to be. */
struct share_terms {
    uint64_t capacity;
    uint64_t life_ns;       /* a portion's usual life, at most */
    uint64_t life_long_ns;  /* where a longer one is free (buckets) */
    uint64_t horizon_ns;    /* the demand of this time makes a portion */
    uint64_t batch;         /* units: or this much, where that is more */
    uint64_t chunk;         /* units: less is not fetched from Redis */
    uint64_t pause_ns;      /* where budget trickles: the longest pause between two calls */
    uint64_t sure_ns;       /* where giving back may fail: the demand of this time at most */
    uint64_t life_min_ns;   /* a portion that would end sooner is not taken */
    uint64_t dry_max_ns;    /* the longest time that a denial is answered from memory */
    uint32_t idle_part;     /* a portion goes back when it was idle for this part of its life */
    uint32_t hot_decisions; /* in a portion's life: the fewest that make leasing pay */
    bool late_returns;      /* giving back helps after the portion's end too */
    bool lossy;             /* giving back may fail: ask for no more than will be used */
};

/* Whether a limit can be leased. life_ns: the longest life; 0: SHARE_LIFE_MAX_NS. */
bool share_terms_init(struct share_terms *terms, const struct weir_limit *limit, uint64_t life_ns);

/* The terms of a holder in another region, whose calls take `roundtrip_ns`. Portions live for up to
 * SHARE_LENT_LIFE_MAX_NS, and are sized for the demand of two round trips. Returns whether the
 * limit can be lent: false also where a portion's life would not outlast its way here. */
bool share_terms_lend(struct share_terms *terms, const struct weir_limit *limit,
                      uint64_t roundtrip_ns);

/* A portion that its holder will not touch again, and how much of it was admitted. */
struct share_settlement {
    uint64_t id, used; /* id 0: nothing to settle */
};

/* One call to Redis. */
struct share_call {
    uint64_t id;     /* not 0, below 2^53 */
    uint64_t holder; /* not 0, below 2^53 */
    uint8_t place;   /* 0..SHARE_PORTIONS-1: which of the holder's portions it becomes */
    uint64_t need;   /* units; less is not given */
    uint64_t want;   /* units; more is not given; 0: it only gives back */
    uint64_t demand; /* units a second: what this holder's part of the budget goes by */
    uint64_t life_ns, life_long_ns, life_min_ns;
    struct share_settlement settled[SHARE_PORTIONS];
    uint64_t forfeited; /* not sent: units of closed portions that are not worth giving back */
};

/* Redis' reply to a call. */
struct share_reply {
    uint64_t id;        /* the call's */
    uint64_t amount;    /* units given; 0: none */
    uint64_t life_ns;   /* e - g */
    bool renewable;     /* a call before its end may give a portion that ends later */
    bool too_short;     /* none given: it would have ended too soon (see retry_ns) */
    uint64_t remaining; /* left in Redis after it */
    uint64_t retry_ns;  /* where remaining < need: until so much is there, or WEIR_NEVER; too_short:
                           until a portion is worth giving */
    uint64_t reset_ns;  /* until the state equals a fresh one */
    uint64_t forfeited; /* units settled that could not be taken back */
};

struct share_portion {
    uint64_t id; /* 0: none */
    uint64_t amount, left;
    uint64_t until_ns; /* spent before this only */
    uint64_t life_ns;  /* as the holder counts it */
    bool open;         /* may be spent */
    bool renewable;    /* a portion asked for now may end later */
    bool settling;     /* its settlement is in flight */
};

/* The demand so far: units and decisions are added up, and turned into rates on request. */
struct share_demand {
    uint64_t since_ns;
    uint64_t units, decisions;           /* since then */
    uint64_t units_rate, decisions_rate; /* a second, smoothed, until then */
};

struct share {
    struct share_portion portion[SHARE_PORTIONS];
    uint64_t asked_id; /* in flight; 0: none */
    uint64_t asked_need, sent_ns;
    uint8_t asked_place;
    bool asked_portion; /* it asks for a portion */
    struct share_demand demand;
    /* As of the last reply, on the holder's clock. */
    uint64_t dry_need, dry_until_ns; /* so much, or more, is not available until then */
    uint64_t exact_until_ns;         /* Redis gives no portion until then */
    uint64_t used_ns;                /* last spent from, or given a portion */
    uint64_t remaining, retry_at_ns, reset_at_ns;
};

/* All zeros except the time from which demand is counted. */
void share_init(struct share *share, uint64_t now_ns);

/* --- Demand ----------------------------------------------------------------------------------- */

static inline void share_demand_note(struct share_demand *demand, uint64_t units)
{
    demand->units += units < UINT32_MAX ? units : UINT32_MAX;
    demand->decisions++;
}

/* Updates the rates if enough time has passed. A burst that has just begun counts at once. */
void share_demand_update(struct share_demand *demand, uint64_t now_ns);

/* --- Deciding --------------------------------------------------------------------------------- */

enum share_outlook {
    SHARE_COVERED, /* share_spend may take it */
    SHARE_DENIED,  /* by Redis' last reply; report: remaining, retry_at_ns */
    SHARE_EXACT,   /* Redis itself has to decide it */
    SHARE_ASK,     /* a portion is needed: share_ask */
    SHARE_WAIT,    /* one is on its way */
};

/* Units that may be spent. */
static inline uint64_t share_left(const struct share *share, uint64_t now_ns)
{
    uint64_t left = 0;

    for (int i = 0; i < SHARE_PORTIONS; i++) {
        const struct share_portion *portion = &share->portion[i];

        left += portion->open && now_ns < portion->until_ns ? portion->left : 0;
    }
    return left;
}

enum share_outlook share_look(const struct share *share, const struct share_terms *terms,
                              uint64_t cost, uint64_t now_ns);

/* Spends a cost that share_left covers at the same time: of the portion that ends first, first. */
void share_spend(struct share *share, uint64_t cost, uint64_t now_ns);

/* The same, and says which units of which portions were spent. */
void share_spend_noted(struct share *share, uint64_t cost, uint64_t now_ns,
                       struct weir_lent *spent);

/* Puts back units that were spent and not admitted, each into the portion that it is of. A portion
 * that was closed meanwhile has been settled with them as used: they stay charged. */
void share_unspend(struct share *share, const struct weir_lent *spent);

/* Whether to ask for more in the background: about half is left, or its end is near. */
bool share_refills(const struct share *share, uint64_t now_ns, uint64_t roundtrip_ns);

/* Whether demand has fallen so low that portions would be lost rather than used: the key is then to
 * be decided exactly. */
bool share_is_cold(const struct share *share, const struct share_terms *terms);

/* --- Calls ------------------------------------------------------------------------------------ */

/* Nothing is in flight. Fills a call that asks for a portion, so that `cost` units (0: a refill)
 * can be spent. call->holder is the caller's to fill. */
void share_ask(struct share *share, const struct share_terms *terms, uint64_t id, uint64_t cost,
               uint64_t now_ns, struct share_call *call);

/* Nothing is in flight. Closes all portions and fills a call that gives them back. Returns false
 * where no call is worth it: nothing is in flight then. */
bool share_give_back(struct share *share, const struct share_terms *terms, uint64_t id,
                     uint64_t now_ns, struct share_call *call);

/* A reply. One that is not of the call in flight changes nothing. Returns whether it was. */
bool share_answered(struct share *share, const struct share_terms *terms,
                    const struct share_reply *reply, uint64_t now_ns);

/* The call in flight has ended without one; `executed`: perhaps it was executed. Returns the units
 * of settled portions that may be lost by it. */
uint64_t share_failed(struct share *share, bool executed);

/* Before share_failed, where the answer is an error, which another call would have, too: for a
 * second Redis is asked for no portion. */
void share_refused(struct share *share, uint64_t now_ns);

/* When its portions are to go back, unless they are spent from until then: a part of their life
 * (terms->idle_part) after they were; WEIR_NEVER: there is nothing worth it. */
uint64_t share_due(const struct share *share, const struct share_terms *terms);

#endif
