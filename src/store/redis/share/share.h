/* SPDX-License-Identifier: Apache-2.0 */
/* One key's shares, as their holder sees them: a state machine without I/O, clock or allocation.
 *
 * A holder (a worker of a node) takes a share of a key's budget from Redis in advance and admits
 * from it without asking. This header says what a holder may do, lua/share.lua what Redis does; the
 * test lease_explore walks through every order of their steps.
 *
 * The protocol
 *
 *   A call carries an id, larger than all ids of this holder before, asks for `need`..`want` units
 *   as the holder's share in one of two places, and settles shares that the holder has closed:
 *   "of share X, U units were admitted, and no more will be". Redis takes the rest of a settled
 *   share back, gives a new one, and remembers for each holder the last id and both its shares.
 *   - A call with an id not above the holder's last one is refused: a repeated or overtaken call
 *     does nothing. A settlement names a share by its id, and a share leaves Redis' record when it
 *     is settled or its place is given anew. So nothing is given back twice.
 *   - A share is settled only after it was closed, and a closed share is never spent again. What is
 *     given back is therefore never admitted.
 *   - A call whose end is unknown may have been executed. Its share is never spent, whatever reply
 *     comes later; the next call settles it as "0 used". What such a call settled is not settled
 *     again: it is forfeited if the call was lost on its way there.
 *   - Two places, so that one share is in use while the next is on its way. One call at a time.
 *
 * Time. Redis gives a share at its time g, until its time e. The holder counts e - g from when it
 * SENT the call, on its own clock, and stops a margin earlier: 1/1000 of it and 1 ms. The call was
 * executed after it was sent, so the holder stops before e as long as its clock and the server's
 * run at rates that differ by less than 1/1000 (NTP slews by 1/2000 at most). What the clocks
 * read plays no part. (The time of a decision is that of its turn of the loop: a process that is
 * stopped within a turn admits, when it goes on, what that turn had read, as any server would.) A
 * step of the server's clock is as in exact mode, but that a share lives on under the old reading
 * until its life ends, 1 s at most: a step forward by more than that, say by a failover to a server
 * whose clock is ahead, gives the new segment's budget early, in exact mode too, and the shares
 * that are out come on top. After a step back, states answer as of the latest time they have seen;
 * grants fall into the segment they know, and buckets are further from fresh.
 *
 * What is charged when a share of c units is given at g until e, and why the sum over all holders
 * and exact decisions never passes what the algorithm promises (used units of a share j: c_j):
 *
 *   Windows (fixed, sliding, segments). The share is tested and charged at g as an exact decision
 *   of cost c is, and e is not after the end of g's segment. Take any admission, at t in segment i,
 *   and the last charge g* <= t in that segment. All that was admitted in i until t, itself
 *   included, is covered by units charged in i by then and not returned; g* was tested with all of
 *   them, and with older segments that weighed at least as much as they do at t. So the exact
 *   algorithm, fed with the admissions alone, would have admitted this one: leased mode admits only
 *   what exact mode could. A return lowers the counter of the segment that was charged, by units
 *   that were not and will not be admitted, so it may come at any time.
 *
 *   sliding_log. The share's entry is dated e, not g. Let (x - W, x] be a window. A share that
 *   admitted in it has e_j > x - W and g_j <= x. When the last of them was given, at g*, all were
 *   counted (e_j > x - W >= g* - W), and the sum was at most N. But a log whose newest entry is at
 *   e decides as of e, and would forget entries of (g - W, e - W] too early. So e stays below the
 *   oldest counted entry's end, oldest + W: as of e and as of g, the same entries count.
 *
 *   Buckets. TAT' = max(TAT, e) + c*T, given only while TAT' - g <= depth. For an interval [s, t]
 *   look at the shares with e_j >= s and g_j <= t, the only ones that can admit in it, in the order
 *   given: TAT after the last of them, at g*, is at least s + sum(c_j)*T and at most g* + depth, so
 *   sum(c_j)*T <= depth + (t - s): the bucket's own bound. (An exact decision is a share with
 *   e = g.) A return of u units subtracts u*T. That keeps TAT >= s + sum(c_j, e_j >= s)*T for all
 *   s <= e_j, where the sum shrinks as well; for a later s it does not. So it is taken only while
 *   the server's time is not after e_j and no share of the key ends after e_j; otherwise it is
 *   forfeited, which costs no more than u*T of refilling.
 *   e - g is an eighth of the depth, or longer where that is free: up to TAT - g.
 *
 *   Never leased: concurrency and leaky_queue (what they give is not a number of units), and limits
 *   too small or too short to be split (lease_terms_init): they are decided exactly.
 *
 *   What else may happen to a state. A limit that changes (a reload): shares that are out were
 * given under the limit of their time and stay good for their life; a holder that sees another
 * limit closes its shares first, and a bucket takes nothing back that was given under another rate.
 * A state that an administrator forgets (WEIR_OP_RESET) or Redis evicts: what is out stays good,
 * and what of it comes back within its life is taken off what others have used since, once. A
 * refund (WEIR_OP_REFUND) of a bucket is not held back as a return is. Each of these lets pass at
 * most the units that are out at that moment, on top of what exact mode would.
 *
 * What a crash costs. The holder's shares stay charged and are not admitted: at most LEASE_SHARES
 * of them, each for the demand of lease_terms.horizon_ns (100 ms at most), or lease_terms.batch, 64
 * units or a sixteenth of the limit, where that is more. A bucket has them back as it refills; a
 * window when their segment leaves it. Nobody has to notice.
 *
 * A bucket's share that ends before it is used up is lost likewise. So it is for an eighth of its
 * life at most, and a key with fewer than eight decisions in a life is decided exactly.
 *
 * What leasing costs otherwise. Units in one holder's share are not there for another: a decision
 * may be denied although, over all nodes, not all is used. Idle shares go back after a quarter of
 * their life; test_lease_demand has the figures. Where the budget trickles, holders ask once in a
 * while (lease_terms.pause_ns) and not for each unit. A full bucket admits a burst less by e - g,
 * an eighth.
 */
#ifndef WEIR_STORE_REDIS_SHARE_SHARE_H
#define WEIR_STORE_REDIS_SHARE_SHARE_H

#include <stdbool.h>
#include <stdint.h>
#include <weir/limit.h>

#define LEASE_SHARES 2

/* Limits below these are decided exactly. */
#define LEASE_CAPACITY_MIN 50
#define LEASE_SPAN_MIN_NS UINT64_C(50000000) /* a segment, a bucket's depth, a log's window */

#define LEASE_LIFE_MAX_NS UINT64_C(1000000000)
/* A shorter life is not worth a share: the margin and a round trip would eat it. */
#define LEASE_LIFE_MIN_NS UINT64_C(4000000)
#define LEASE_MARGIN_NS UINT64_C(1000000)
#define LEASE_DRIFT 1000

/* A denial is answered from memory at most so long. */
#define LEASE_DRY_MAX_NS UINT64_C(100000000)

/* What a limit means for its shares. */
struct lease_terms {
    uint64_t capacity;
    uint64_t life_ns;       /* a share's usual life, at most */
    uint64_t life_long_ns;  /* where a longer one costs nothing (buckets) */
    uint64_t horizon_ns;    /* a share is for the demand of so long */
    uint64_t batch;         /* units: or for so much, where that is more */
    uint64_t chunk;         /* units: less is left where it is */
    uint64_t pause_ns;      /* where budget trickles: the longest pause between two askings */
    uint32_t hot_decisions; /* in a share's life: from so many on a key is worth leasing */
    bool late_returns;      /* giving back is of use after the share's end too */
    bool lossy;             /* giving back may fail: take no more than will be used */
};

/* Whether a limit can be leased. life_ns: the longest life; 0: LEASE_LIFE_MAX_NS. */
bool lease_terms_init(struct lease_terms *terms, const struct weir_limit *limit, uint64_t life_ns);

/* A share that its holder will not touch again, and how much of it was admitted. */
struct lease_settlement {
    uint64_t id, used; /* id 0: nothing to settle */
};

/* What is asked of Redis. */
struct lease_call {
    uint64_t id;     /* not 0, below 2^53 */
    uint64_t holder; /* not 0, below 2^53 */
    uint8_t place;   /* 0..LEASE_SHARES-1: which of the holder's shares it becomes */
    uint64_t need;   /* units; less is not given */
    uint64_t want;   /* units; more is not given; 0: it only gives back */
    uint64_t demand; /* units a second: what this holder's part of the budget goes by */
    uint64_t life_ns, life_long_ns;
    struct lease_settlement settled[LEASE_SHARES];
};

/* What Redis answers. */
struct lease_reply {
    uint64_t id;        /* the call's */
    uint64_t amount;    /* units given; 0: none */
    uint64_t life_ns;   /* e - g */
    bool renewable;     /* asking again before its end may give a share that ends later */
    bool too_short;     /* none given: it would have ended too soon (see retry_ns) */
    uint64_t remaining; /* left in Redis after it */
    uint64_t retry_ns;  /* where remaining < need: until so much is there, or WEIR_NEVER; too_short:
                           until a share is worth giving */
    uint64_t reset_ns;  /* until the state equals a fresh one */
    uint64_t forfeited; /* units settled that could not be taken back */
};

struct lease_share {
    uint64_t id; /* 0: none */
    uint64_t amount, left;
    uint64_t until_ns; /* spent before this only */
    uint64_t life_ns;  /* as the holder counts it */
    bool open;         /* may be spent */
    bool renewable;    /* a share asked for now may end later */
    bool settling;     /* its settlement is in flight */
};

/* What demand there was. Units and decisions are added up; a rate is made of them when asked. */
struct lease_demand {
    uint64_t since_ns;
    uint64_t units, decisions;           /* since then */
    uint64_t units_rate, decisions_rate; /* a second, smoothed, until then */
};

struct lease {
    struct lease_share share[LEASE_SHARES];
    uint64_t asked_id; /* in flight; 0: none */
    uint64_t asked_need, sent_ns;
    uint8_t asked_place;
    bool asked_share; /* it asks for a share */
    struct lease_demand demand;
    /* As of the last reply, on the holder's clock. */
    uint64_t dry_need, dry_until_ns; /* so much, or more, cannot be had until then */
    uint64_t exact_until_ns;         /* no share is worth giving until then */
    uint64_t used_ns;                /* last spent from, or given a share */
    uint64_t remaining, retry_at_ns, reset_at_ns;
};

/* All zeros but for the time that demand is counted from. */
void lease_init(struct lease *lease, uint64_t now_ns);

/* --- Demand ---------------------------------------------------------------------------------- */

static inline void lease_demand_note(struct lease_demand *demand, uint64_t units)
{
    demand->units += units < UINT32_MAX ? units : UINT32_MAX;
    demand->decisions++;
}

/* Takes what was added up into the rates, where enough time has passed. Rates of a burst that has
 * just begun count at once. */
void lease_demand_update(struct lease_demand *demand, uint64_t now_ns);

/* --- Deciding -------------------------------------------------------------------------------- */

enum lease_outlook {
    LEASE_COVERED, /* lease_spend may take it */
    LEASE_DENIED,  /* Redis has said so; report: remaining, retry_at_ns */
    LEASE_EXACT,   /* to be decided by Redis itself */
    LEASE_ASK,     /* a share is needed: lease_ask */
    LEASE_WAIT,    /* one is on its way */
};

/* Units that may be spent. */
static inline uint64_t lease_left(const struct lease *lease, uint64_t now_ns)
{
    uint64_t left = 0;

    for (int i = 0; i < LEASE_SHARES; i++) {
        const struct lease_share *share = &lease->share[i];

        left += share->open && now_ns < share->until_ns ? share->left : 0;
    }
    return left;
}

enum lease_outlook lease_look(const struct lease *lease, const struct lease_terms *terms,
                              uint64_t cost, uint64_t now_ns);

/* Spends a cost that lease_left covers at the same time: of the share that ends first, first. */
void lease_spend(struct lease *lease, uint64_t cost, uint64_t now_ns);

/* Whether to ask for more in the background: about half is left, or its end is near. */
bool lease_refills(const struct lease *lease, uint64_t now_ns, uint64_t roundtrip_ns);

/* Whether demand has fallen so low that shares would be lost rather than used: the key is then to
 * be decided exactly. */
bool lease_is_cold(const struct lease *lease, const struct lease_terms *terms);

/* --- Calls ----------------------------------------------------------------------------------- */

/* Nothing is in flight. Fills a call that asks for a share, so that `cost` units (0: a refill) can
 * be spent. call->holder is the caller's to fill. */
void lease_ask(struct lease *lease, const struct lease_terms *terms, uint64_t id, uint64_t cost,
               uint64_t now_ns, struct lease_call *call);

/* Nothing is in flight. Closes all shares and fills a call that gives them back. Returns false
 * where no call is worth it: nothing is in flight then. */
bool lease_give_back(struct lease *lease, const struct lease_terms *terms, uint64_t id,
                     uint64_t now_ns, struct lease_call *call);

/* A reply. One that is not of the call in flight changes nothing. Returns whether it was. */
bool lease_answered(struct lease *lease, const struct lease_terms *terms,
                    const struct lease_reply *reply, uint64_t now_ns);

/* The call in flight has ended without one; `executed`: perhaps it was executed. Returns the units
 * of settled shares that may be lost by it. */
uint64_t lease_failed(struct lease *lease, bool executed);

/* When its shares are to go back, unless they are spent from until then: a quarter of their life
 * after they were; WEIR_NEVER: there is nothing worth it. */
uint64_t lease_due(const struct lease *lease, const struct lease_terms *terms);

#endif
