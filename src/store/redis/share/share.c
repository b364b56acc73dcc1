/* SPDX-License-Identifier: Apache-2.0 */
/* see share.h */
#include "store/redis/share/share.h"

#include <string.h>

#include "core/wide.h"

#define SECOND_NS UINT64_C(1000000000)
#define HORIZON_NS UINT64_C(100000000)
#define BATCH_MAX 64
#define BATCH_PART 16 /* of the capacity, at most, for a holder of little demand */
#define CHUNK_MAX 64
#define CHUNK_PART 128 /* of the capacity: what may be left over of a window */
#define PAUSE_MAX_NS UINT64_C(50000000)
#define PAUSE_PART 48 /* of a segment or a window: what trickles meanwhile is admitted late */
/* Decisions to be made from memory for one call, where the pause's limits allow it. */
#define PAUSE_DECISIONS 64
/* Entries are dated at a share's end: that part of the limit is lost. */
#define LOG_LIFE_PART 32
/* A share of a bucket is for this part of its life, since what is not used by its end is lost; so
 * that it holds a decision, there have to be as many in a life (test_lease_demand). */
#define LOSSY_LIFE_PART 8
/* Fewer decisions in a life cost more calls than they save. */
#define HOT_DECISIONS 4
/* What a burst may lose. */
#define BUCKET_LIFE_PART 8

#define DEMAND_STEP_NS UINT64_C(20000000)
#define DEMAND_MEMORY_NS UINT64_C(500000000)

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* a * b / c for rates and times, where a * b may pass 64 bits but precision does not matter. */
static uint64_t scale(uint64_t a, uint64_t b, uint64_t c)
{
    if (b == 0 || a <= UINT64_MAX / b)
        return a * b / c;
    return a / c <= UINT64_MAX / b ? a / c * b : UINT64_MAX;
}

/* --- Terms ----------------------------------------------------------------------------------- */

static void window_terms(struct lease_terms *terms, const struct weir_limit *limit,
                         uint64_t life_ns)
{
    bool fixed = limit->spec.algorithm == WEIR_FIXED_WINDOW;

    terms->life_ns = least(life_ns, limit->segment_ns);
    terms->life_long_ns = terms->life_ns;
    terms->late_returns = !fixed;
    /* Only the weight of the oldest segment trickles; else budget comes with a segment's end. */
    terms->pause_ns = fixed || limit->spec.strict ? 0 : limit->segment_ns / PAUSE_PART;
}

/* Scripts multiply with T in 1/denom ns, which has to be a double. */
static bool is_double(const struct weir_limit *limit)
{
    struct wide period = wide_multiply(limit->period_ns, limit->denom);

    period = wide_add(period, limit->period_rem);
    return period.hi == 0 && period.lo >> 53 == 0;
}

static void bucket_terms(struct lease_terms *terms, const struct weir_limit *limit,
                         uint64_t life_ns)
{
    terms->life_ns = least(life_ns, limit->depth_ns / BUCKET_LIFE_PART);
    terms->life_long_ns = least(life_ns, limit->depth_ns);
    terms->lossy = true;
    terms->hot_decisions = LOSSY_LIFE_PART;
    terms->pause_ns = limit->depth_ns / 6;
}

bool lease_terms_init(struct lease_terms *terms, const struct weir_limit *limit, uint64_t life_ns)
{
    uint64_t span_ns = 0;

    memset(terms, 0, sizeof *terms);
    terms->hot_decisions = HOT_DECISIONS;
    life_ns = life_ns == 0 ? LEASE_LIFE_MAX_NS : least(life_ns, LEASE_LIFE_MAX_NS);
    switch (limit->spec.algorithm) {
    case WEIR_FIXED_WINDOW:
    case WEIR_SLIDING_WINDOW:
        span_ns = limit->segment_ns;
        window_terms(terms, limit, life_ns);
        break;
    case WEIR_SLIDING_LOG:
        span_ns = limit->spec.window_ns;
        terms->life_ns = least(life_ns, span_ns / LOG_LIFE_PART);
        terms->life_long_ns = terms->life_ns;
        terms->late_returns = true;
        terms->pause_ns = span_ns / PAUSE_PART;
        break;
    case WEIR_TOKEN_BUCKET:
    case WEIR_GCRA:
    case WEIR_LEAKY_BUCKET:
        span_ns = is_double(limit) ? limit->depth_ns : 0;
        bucket_terms(terms, limit, life_ns);
        break;
    default:
        return false;
    }
    terms->capacity = limit->capacity;
    terms->life_ns -= terms->life_ns % 1000; /* scripts know whole microseconds */
    terms->life_long_ns -= terms->life_long_ns % 1000;
    terms->pause_ns = least(terms->pause_ns, PAUSE_MAX_NS);
    terms->horizon_ns = least(HORIZON_NS, terms->life_ns / 2);
    terms->batch = most(1, least(BATCH_MAX, limit->capacity / BATCH_PART));
    terms->chunk = most(1, least(CHUNK_MAX, limit->capacity / CHUNK_PART));
    return limit->spec.rate > 0 && limit->capacity >= LEASE_CAPACITY_MIN &&
           span_ns >= LEASE_SPAN_MIN_NS && terms->life_ns > LEASE_LIFE_MIN_NS;
}

/* --- Demand ---------------------------------------------------------------------------------- */

/* Rises by half the difference at once, falls with a memory of DEMAND_MEMORY_NS. */
static uint64_t smooth(uint64_t rate, uint64_t recent, uint64_t passed_ns)
{
    if (recent >= rate)
        return rate + (recent - rate + 1) / 2;
    if (passed_ns >= DEMAND_MEMORY_NS)
        return recent;
    return rate - scale(rate - recent, passed_ns, DEMAND_MEMORY_NS);
}

void lease_demand_update(struct lease_demand *demand, uint64_t now_ns)
{
    uint64_t passed_ns = now_ns > demand->since_ns ? now_ns - demand->since_ns : 0;
    uint64_t over_ns = most(passed_ns, DEMAND_STEP_NS);
    uint64_t units = scale(demand->units, SECOND_NS, over_ns);
    uint64_t decisions = scale(demand->decisions, SECOND_NS, over_ns);

    if (passed_ns < DEMAND_STEP_NS) {
        demand->units_rate = most(demand->units_rate, units);
        demand->decisions_rate = most(demand->decisions_rate, decisions);
        return;
    }
    demand->units_rate = smooth(demand->units_rate, units, passed_ns);
    demand->decisions_rate = smooth(demand->decisions_rate, decisions, passed_ns);
    demand->units = 0;
    demand->decisions = 0;
    demand->since_ns = now_ns;
}

/* --- Deciding -------------------------------------------------------------------------------- */

void lease_init(struct lease *lease, uint64_t now_ns)
{
    memset(lease, 0, sizeof *lease);
    lease->demand.since_ns = now_ns;
}

static uint64_t spendable(const struct lease_share *share, uint64_t now_ns)
{
    return share->open && now_ns < share->until_ns ? share->left : 0;
}

enum lease_outlook lease_look(const struct lease *lease, const struct lease_terms *terms,
                              uint64_t cost, uint64_t now_ns)
{
    uint64_t left = lease_left(lease, now_ns);

    if (cost <= left)
        return LEASE_COVERED;
    if (cost > terms->capacity)
        return LEASE_EXACT;
    if (now_ns < lease->dry_until_ns && most(cost - left, terms->chunk) >= lease->dry_need)
        return LEASE_DENIED;
    if (lease->asked_id != 0)
        return LEASE_WAIT;
    return now_ns < lease->exact_until_ns ? LEASE_EXACT : LEASE_ASK;
}

static void spend_from(struct lease_share *share, uint64_t *cost, uint64_t now_ns)
{
    uint64_t part = least(*cost, spendable(share, now_ns));

    share->left -= part;
    *cost -= part;
}

void lease_spend(struct lease *lease, uint64_t cost, uint64_t now_ns)
{
    int first = lease->share[0].until_ns <= lease->share[1].until_ns ? 0 : 1;

    spend_from(&lease->share[first], &cost, now_ns);
    spend_from(&lease->share[1 - first], &cost, now_ns);
    lease->used_ns = now_ns;
}

bool lease_is_cold(const struct lease *lease, const struct lease_terms *terms)
{
    return terms->lossy && scale(lease->demand.decisions_rate, terms->life_ns, SECOND_NS) <
                               terms->hot_decisions / 2;
}

bool lease_refills(const struct lease *lease, uint64_t now_ns, uint64_t roundtrip_ns)
{
    const struct lease_share *share = &lease->share[0];

    if (lease->asked_id != 0 || now_ns < lease->dry_until_ns || now_ns < lease->exact_until_ns)
        return false;
    if (spendable(share, now_ns) == 0)
        share = &lease->share[1];
    else if (spendable(&lease->share[1], now_ns) > 0)
        return false;
    if (spendable(share, now_ns) == 0)
        return false;
    return share->left <= share->amount / 2 ||
           (share->renewable &&
            share->until_ns - now_ns < most(share->life_ns / 4, 4 * roundtrip_ns));
}

/* --- Calls ----------------------------------------------------------------------------------- */

static uint64_t for_so_long(const struct lease *lease, uint64_t time_ns)
{
    return scale(lease->demand.units_rate, time_ns, SECOND_NS);
}

/* Where what is not used is lost: no more than will be used in a small part of a share's life. */
static uint64_t sure(const struct lease *lease, const struct lease_terms *terms, uint64_t units)
{
    if (!terms->lossy)
        return units;
    return most(1, least(units, for_so_long(lease, terms->life_ns / LOSSY_LIFE_PART)));
}

/* Enough for the horizon, or a batch. */
static uint64_t wanted(const struct lease *lease, const struct lease_terms *terms, uint64_t need)
{
    uint64_t batch = sure(lease, terms, terms->batch);
    uint64_t want = most(for_so_long(lease, terms->horizon_ns), batch);

    return least(most(want, need), terms->capacity);
}

/* Where a new share goes: in place of one that is used up, else of the smaller one. */
static uint8_t place_of(const struct lease *lease, uint64_t now_ns)
{
    uint64_t left0 = spendable(&lease->share[0], now_ns);
    uint64_t left1 = spendable(&lease->share[1], now_ns);

    if (left0 == left1)
        return lease->share[0].id <= lease->share[1].id ? 0 : 1;
    return left0 < left1 ? 0 : 1;
}

static void start_call(struct lease *lease, uint64_t id, uint64_t now_ns, struct lease_call *call)
{
    memset(call, 0, sizeof *call);
    call->id = id;
    lease->asked_id = id;
    lease->sent_ns = now_ns;
}

/* A closed share's settlement goes with the call. */
static void settle(struct lease_share *share, struct lease_settlement *settlement)
{
    share->settling = true;
    settlement->id = share->id;
    settlement->used = share->amount - share->left;
}

void lease_ask(struct lease *lease, const struct lease_terms *terms, uint64_t id, uint64_t cost,
               uint64_t now_ns, struct lease_call *call)
{
    uint8_t place = place_of(lease, now_ns);
    uint64_t other = spendable(&lease->share[1 - place], now_ns);

    lease_demand_update(&lease->demand, now_ns);
    start_call(lease, id, now_ns, call);
    for (uint8_t i = 0; i < LEASE_SHARES; i++) {
        struct lease_share *share = &lease->share[i];

        if (i == place || spendable(share, now_ns) == 0)
            share->open = false;
        if (!share->open && share->id != 0)
            settle(share, &call->settled[i]);
    }
    call->place = place;
    call->need = most(cost > other ? cost - other : 0, sure(lease, terms, terms->chunk));
    call->want = wanted(lease, terms, call->need);
    call->demand = most(1, lease->demand.units_rate);
    call->life_ns = terms->life_ns;
    call->life_long_ns = terms->life_long_ns;
    lease->asked_place = place;
    lease->asked_share = true;
    lease->asked_need = call->need;
}

/* Whether giving back the rest of a share helps anybody. */
static bool worth_returning(const struct lease_share *share, const struct lease_terms *terms,
                            uint64_t now_ns)
{
    return share->id != 0 && share->left > 0 && (terms->late_returns || now_ns < share->until_ns);
}

bool lease_give_back(struct lease *lease, const struct lease_terms *terms, uint64_t id,
                     uint64_t now_ns, struct lease_call *call)
{
    bool worth = false;

    start_call(lease, id, now_ns, call);
    for (uint8_t i = 0; i < LEASE_SHARES; i++) {
        struct lease_share *share = &lease->share[i];

        share->open = false;
        if (worth_returning(share, terms, now_ns)) {
            settle(share, &call->settled[i]);
            worth = true;
        } else {
            share->id = 0;
        }
    }
    call->demand = 1;
    call->life_ns = terms->life_ns;
    call->life_long_ns = terms->life_long_ns;
    lease->asked_share = false;
    lease->asked_need = 0;
    if (!worth)
        lease->asked_id = 0;
    return worth;
}

static uint64_t holders_life_ns(uint64_t life_ns)
{
    uint64_t margin_ns = life_ns / LEASE_DRIFT + LEASE_MARGIN_NS;

    return life_ns > margin_ns ? life_ns - margin_ns : 0;
}

static void take_share(struct lease *lease, const struct lease_reply *reply, uint64_t now_ns)
{
    struct lease_share *share = &lease->share[lease->asked_place];

    memset(share, 0, sizeof *share);
    if (reply->amount == 0)
        return;
    share->id = reply->id;
    share->amount = reply->amount;
    share->left = reply->amount;
    share->life_ns = holders_life_ns(reply->life_ns);
    share->until_ns = lease->sent_ns + share->life_ns;
    share->open = now_ns < share->until_ns;
    share->renewable = reply->renewable;
}

/* How long a refusal is believed: until it may change, but where budget trickles for a pause. */
static uint64_t dry_for_ns(const struct lease *lease, const struct lease_terms *terms,
                           uint64_t retry_ns)
{
    uint64_t rate = lease->demand.decisions_rate;
    uint64_t pause_ns = rate > 0 ? PAUSE_DECISIONS * SECOND_NS / rate : terms->pause_ns;

    pause_ns = least(pause_ns, terms->pause_ns);
    return least(most(retry_ns, pause_ns), LEASE_DRY_MAX_NS);
}

/* What Redis has left, and when it will have what was needed. */
static void learn(struct lease *lease, const struct lease_terms *terms,
                  const struct lease_reply *reply, uint64_t now_ns)
{
    uint64_t need = lease->asked_need;

    lease->remaining = reply->remaining;
    lease->reset_at_ns = now_ns + least(reply->reset_ns, WEIR_NEVER - now_ns);
    if (reply->remaining >= lease->dry_need || now_ns >= lease->dry_until_ns)
        lease->dry_until_ns = 0;
    if (reply->too_short)
        lease->exact_until_ns = now_ns + least(reply->retry_ns, 2 * LEASE_LIFE_MIN_NS);
    if (reply->too_short || reply->remaining >= need)
        return;
    if (lease->dry_until_ns != 0 && lease->dry_need <= need)
        return;
    lease->dry_need = need;
    lease->dry_until_ns = now_ns + dry_for_ns(lease, terms, reply->retry_ns);
    lease->retry_at_ns = now_ns + least(reply->retry_ns, WEIR_NEVER - now_ns);
}

bool lease_answered(struct lease *lease, const struct lease_terms *terms,
                    const struct lease_reply *reply, uint64_t now_ns)
{
    if (lease->asked_id == 0 || reply->id != lease->asked_id)
        return false;
    for (int i = 0; i < LEASE_SHARES; i++)
        if (lease->share[i].settling)
            memset(&lease->share[i], 0, sizeof lease->share[i]);
    if (lease->asked_share) {
        take_share(lease, reply, now_ns);
        learn(lease, terms, reply, now_ns);
        lease->used_ns = now_ns;
    }
    lease->asked_id = 0;
    return true;
}

uint64_t lease_failed(struct lease *lease, bool executed)
{
    uint64_t lost = 0;

    for (int i = 0; i < LEASE_SHARES; i++) {
        struct lease_share *share = &lease->share[i];

        if (executed && share->settling) {
            lost += share->left;
            share->id = 0;
            share->left = 0;
        }
        share->settling = false;
    }
    if (executed && lease->asked_share) {
        struct lease_share *share = &lease->share[lease->asked_place];

        /* How much it was is not known; that none of it is used is what counts. */
        memset(share, 0, sizeof *share);
        share->id = lease->asked_id;
        share->amount = share->left = 1;
        share->until_ns = lease->sent_ns + LEASE_LIFE_MIN_NS;
    }
    lease->asked_id = 0;
    return lost;
}

uint64_t lease_due(const struct lease *lease, const struct lease_terms *terms)
{
    uint64_t idle_ns = 0;
    bool any = false;

    if (lease->asked_id != 0)
        return WEIR_NEVER;
    for (int i = 0; i < LEASE_SHARES; i++) {
        const struct lease_share *share = &lease->share[i];

        if (worth_returning(share, terms, lease->used_ns)) {
            idle_ns = most(idle_ns, most(share->life_ns, LEASE_LIFE_MIN_NS) / 4);
            any = true;
        }
    }
    return any ? lease->used_ns + idle_ns : WEIR_NEVER;
}
