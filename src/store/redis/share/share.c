/* SPDX-License-Identifier: Apache-2.0 */
/* see share.h */
#include "store/redis/share/share.h"

#include <string.h>

#include "core/wide.h"

#define SECOND_NS UINT64_C(1000000000)
#define HORIZON_NS UINT64_C(100000000)
#define REFUSED_NS SECOND_NS /* a refusal lasts: another weir's shares, a missing right */
#define BATCH_MAX 64
#define BATCH_PART 16 /* of the capacity, at most, for a holder of little demand */
#define CHUNK_MAX 64
#define CHUNK_PART 128 /* of the capacity: what may be left over of a window */
#define PAUSE_MAX_NS UINT64_C(50000000)
#define PAUSE_PART 48 /* of a segment or a window: what trickles meanwhile is admitted late */
/* Decisions to be made from memory for one call, where the pause's limits allow it. */
#define PAUSE_DECISIONS 64
/* Entries are dated at a portion's end: that part of the limit is lost. */
#define LOG_LIFE_PART 32
/* From another region, a shorter life would not outlast the way. */
#define LENT_LOG_LIFE_PART 8
/* A portion of a bucket is for this part of its life, since what is not used by its end is lost; so
 * that it holds a decision, there have to be as many in a life (test_share_demand). */
#define LOSSY_LIFE_PART 8
/* Fewer decisions in a life cost more calls than they save. */
#define HOT_DECISIONS 4
/* What a burst may lose. */
#define BUCKET_LIFE_PART 8

/* A portion goes back when it was not used for this part of its life. From another region it has
 * come a long way, so it waits longer for the next request. */
#define IDLE_PART 4
#define LENT_IDLE_PART 2
/* How long another region's denial is believed. Asking more often would cost calls across an ocean
 * for a budget that is used up. */
#define LENT_DRY_MAX_NS UINT64_C(1000000000)

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

/* --- Terms ------------------------------------------------------------------------------------ */

static void window_terms(struct share_terms *terms, const struct weir_limit *limit,
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

static void bucket_terms(struct share_terms *terms, const struct weir_limit *limit,
                         uint64_t life_ns)
{
    terms->life_ns = least(life_ns, limit->depth_ns / BUCKET_LIFE_PART);
    terms->life_long_ns = least(life_ns, limit->depth_ns);
    terms->lossy = true;
    terms->hot_decisions = LOSSY_LIFE_PART;
    terms->pause_ns = limit->depth_ns / 6;
}

/* life_ns: the longest life. */
static bool terms_of(struct share_terms *terms, const struct weir_limit *limit, uint64_t life_ns,
                     uint64_t log_part)
{
    uint64_t span_ns = 0;

    memset(terms, 0, sizeof *terms);
    terms->hot_decisions = HOT_DECISIONS;
    terms->life_min_ns = SHARE_LIFE_MIN_NS;
    terms->dry_max_ns = SHARE_DRY_MAX_NS;
    terms->idle_part = IDLE_PART;
    switch (limit->spec.algorithm) {
    case WEIR_FIXED_WINDOW:
    case WEIR_SLIDING_WINDOW:
        span_ns = limit->segment_ns;
        window_terms(terms, limit, life_ns);
        break;
    case WEIR_SLIDING_LOG:
        span_ns = limit->spec.window_ns;
        terms->life_ns = least(life_ns, span_ns / log_part);
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
    terms->sure_ns = terms->life_ns / LOSSY_LIFE_PART;
    terms->batch = most(1, least(BATCH_MAX, limit->capacity / BATCH_PART));
    terms->chunk = most(1, least(CHUNK_MAX, limit->capacity / CHUNK_PART));
    return limit->spec.rate > 0 && span_ns >= SHARE_SPAN_MIN_NS &&
           terms->life_ns > terms->life_min_ns;
}

bool share_terms_init(struct share_terms *terms, const struct weir_limit *limit, uint64_t life_ns)
{
    life_ns = life_ns == 0 ? SHARE_LIFE_MAX_NS : least(life_ns, SHARE_LIFE_MAX_NS);
    return terms_of(terms, limit, life_ns, LOG_LIFE_PART) && limit->capacity >= SHARE_CAPACITY_MIN;
}

bool share_terms_lend(struct share_terms *terms, const struct weir_limit *limit,
                      uint64_t roundtrip_ns)
{
    bool lends = terms_of(terms, limit, SHARE_LENT_LIFE_MAX_NS, LENT_LOG_LIFE_PART);
    uint64_t two_trips_ns = 2 * least(roundtrip_ns, SHARE_LENT_LIFE_MAX_NS);

    terms->horizon_ns = least(most(two_trips_ns, HORIZON_NS), terms->life_ns / 2);
    terms->sure_ns = least(most(two_trips_ns, terms->sure_ns), terms->life_ns / 2);
    terms->life_min_ns += two_trips_ns;
    terms->dry_max_ns = LENT_DRY_MAX_NS;
    terms->idle_part = LENT_IDLE_PART;
    return lends && terms->life_ns > terms->life_min_ns;
}

/* --- Demand ----------------------------------------------------------------------------------- */

/* Rises by half the difference at once, falls with a memory of DEMAND_MEMORY_NS. */
static uint64_t smooth(uint64_t rate, uint64_t recent, uint64_t passed_ns)
{
    if (recent >= rate)
        return rate + (recent - rate + 1) / 2;
    if (passed_ns >= DEMAND_MEMORY_NS)
        return recent;
    return rate - scale(rate - recent, passed_ns, DEMAND_MEMORY_NS);
}

void share_demand_update(struct share_demand *demand, uint64_t now_ns)
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

/* --- Deciding --------------------------------------------------------------------------------- */

void share_init(struct share *share, uint64_t now_ns)
{
    memset(share, 0, sizeof *share);
    share->demand.since_ns = now_ns;
}

static uint64_t spendable(const struct share_portion *portion, uint64_t now_ns)
{
    return portion->open && now_ns < portion->until_ns ? portion->left : 0;
}

enum share_outlook share_look(const struct share *share, const struct share_terms *terms,
                              uint64_t cost, uint64_t now_ns)
{
    uint64_t left = share_left(share, now_ns);

    if (cost <= left)
        return SHARE_COVERED;
    if (cost > terms->capacity)
        return SHARE_EXACT;
    if (now_ns < share->dry_until_ns && most(cost - left, terms->chunk) >= share->dry_need)
        return SHARE_DENIED;
    if (share->asked_id != 0)
        return SHARE_WAIT;
    return now_ns < share->exact_until_ns ? SHARE_EXACT : SHARE_ASK;
}

void share_spend_noted(struct share *share, uint64_t cost, uint64_t now_ns, struct weir_lent *spent)
{
    int first = share->portion[0].until_ns <= share->portion[1].until_ns ? 0 : 1;

    for (int i = 0; i < SHARE_PORTIONS; i++) {
        int at = i == 0 ? first : 1 - first;
        struct share_portion *portion = &share->portion[at];
        uint64_t part = least(cost, spendable(portion, now_ns));

        portion->left -= part;
        cost -= part;
        spent->portion[at] = portion->id;
        spent->units[at] = part;
    }
    share->used_ns = now_ns;
}

void share_spend(struct share *share, uint64_t cost, uint64_t now_ns)
{
    struct weir_lent spent;

    share_spend_noted(share, cost, now_ns, &spent);
}

void share_unspend(struct share *share, const struct weir_lent *spent)
{
    for (int i = 0; i < SHARE_PORTIONS; i++) {
        struct share_portion *portion = &share->portion[i];

        if (portion->open && portion->id == spent->portion[i])
            portion->left += spent->units[i];
    }
}

bool share_is_cold(const struct share *share, const struct share_terms *terms)
{
    return terms->lossy && scale(share->demand.decisions_rate, terms->life_ns, SECOND_NS) <
                               terms->hot_decisions / 2;
}

bool share_refills(const struct share *share, uint64_t now_ns, uint64_t roundtrip_ns)
{
    const struct share_portion *portion = &share->portion[0];

    if (share->asked_id != 0 || now_ns < share->dry_until_ns || now_ns < share->exact_until_ns)
        return false;
    if (spendable(portion, now_ns) == 0)
        portion = &share->portion[1];
    else if (spendable(&share->portion[1], now_ns) > 0)
        return false;
    if (spendable(portion, now_ns) == 0)
        return false;
    return portion->left <= portion->amount / 2 ||
           (portion->renewable &&
            portion->until_ns - now_ns < most(portion->life_ns / 4, 4 * roundtrip_ns));
}

/* --- Calls ------------------------------------------------------------------------------------ */

static uint64_t for_so_long(const struct share *share, uint64_t time_ns)
{
    return scale(share->demand.units_rate, time_ns, SECOND_NS);
}

/* Where what is not used is lost: no more than will be used in a small part of a portion's life. */
static uint64_t sure(const struct share *share, const struct share_terms *terms, uint64_t units)
{
    if (!terms->lossy)
        return units;
    return most(1, least(units, for_so_long(share, terms->sure_ns)));
}

/* Enough for the horizon, or a batch. */
static uint64_t wanted(const struct share *share, const struct share_terms *terms, uint64_t need)
{
    uint64_t batch = sure(share, terms, terms->batch);
    uint64_t want = most(for_so_long(share, terms->horizon_ns), batch);

    return least(most(want, need), terms->capacity);
}

/* Where a new portion goes: in place of one that is used up, else of the smaller one. */
static uint8_t place_of(const struct share *share, uint64_t now_ns)
{
    uint64_t left0 = spendable(&share->portion[0], now_ns);
    uint64_t left1 = spendable(&share->portion[1], now_ns);

    if (left0 == left1)
        return share->portion[0].id <= share->portion[1].id ? 0 : 1;
    return left0 < left1 ? 0 : 1;
}

static void start_call(struct share *share, uint64_t id, uint64_t now_ns, struct share_call *call)
{
    memset(call, 0, sizeof *call);
    call->id = id;
    share->asked_id = id;
    share->sent_ns = now_ns;
}

/* A closed portion's settlement goes with the call. */
static void settle(struct share_portion *portion, struct share_settlement *settlement)
{
    portion->settling = true;
    settlement->id = portion->id;
    settlement->used = portion->amount - portion->left;
}

void share_ask(struct share *share, const struct share_terms *terms, uint64_t id, uint64_t cost,
               uint64_t now_ns, struct share_call *call)
{
    uint8_t place = place_of(share, now_ns);
    uint64_t other = spendable(&share->portion[1 - place], now_ns);

    share_demand_update(&share->demand, now_ns);
    start_call(share, id, now_ns, call);
    for (uint8_t i = 0; i < SHARE_PORTIONS; i++) {
        struct share_portion *portion = &share->portion[i];

        if (i == place || spendable(portion, now_ns) == 0)
            portion->open = false;
        if (!portion->open && portion->id != 0)
            settle(portion, &call->settled[i]);
    }
    call->place = place;
    call->need = most(cost > other ? cost - other : 0, sure(share, terms, terms->chunk));
    call->want = wanted(share, terms, call->need);
    call->demand = most(1, share->demand.units_rate);
    call->life_ns = terms->life_ns;
    call->life_long_ns = terms->life_long_ns;
    call->life_min_ns = terms->life_min_ns;
    share->asked_place = place;
    share->asked_portion = true;
    share->asked_need = call->need;
}

/* Whether giving back the rest of a portion is of use. */
static bool worth_returning(const struct share_portion *portion, const struct share_terms *terms,
                            uint64_t now_ns)
{
    return portion->id != 0 && portion->left > 0 &&
           (terms->late_returns || now_ns < portion->until_ns);
}

bool share_give_back(struct share *share, const struct share_terms *terms, uint64_t id,
                     uint64_t now_ns, struct share_call *call)
{
    bool worth = false;

    start_call(share, id, now_ns, call);
    for (uint8_t i = 0; i < SHARE_PORTIONS; i++) {
        struct share_portion *portion = &share->portion[i];

        portion->open = false;
        if (worth_returning(portion, terms, now_ns)) {
            settle(portion, &call->settled[i]);
            worth = true;
        } else {
            call->forfeited += portion->id != 0 ? portion->left : 0;
            portion->id = 0;
        }
    }
    call->demand = 1;
    call->life_ns = terms->life_ns;
    call->life_long_ns = terms->life_long_ns;
    call->life_min_ns = terms->life_min_ns;
    share->asked_portion = false;
    share->asked_need = 0;
    if (!worth)
        share->asked_id = 0;
    return worth;
}

static uint64_t holders_life_ns(uint64_t life_ns)
{
    uint64_t margin_ns = life_ns / SHARE_DRIFT + SHARE_MARGIN_NS;

    return life_ns > margin_ns ? life_ns - margin_ns : 0;
}

static void take_portion(struct share *share, const struct share_reply *reply, uint64_t now_ns)
{
    struct share_portion *portion = &share->portion[share->asked_place];

    memset(portion, 0, sizeof *portion);
    if (reply->amount == 0)
        return;
    portion->id = reply->id;
    portion->amount = reply->amount;
    portion->left = reply->amount;
    portion->life_ns = holders_life_ns(reply->life_ns);
    portion->until_ns = share->sent_ns + portion->life_ns;
    portion->open = now_ns < portion->until_ns;
    portion->renewable = reply->renewable;
}

/* How long a refusal is believed: until it may change, but where budget trickles for a pause. */
static uint64_t dry_for_ns(const struct share *share, const struct share_terms *terms,
                           uint64_t retry_ns)
{
    uint64_t rate = share->demand.decisions_rate;
    uint64_t pause_ns = rate > 0 ? PAUSE_DECISIONS * SECOND_NS / rate : terms->pause_ns;

    pause_ns = least(pause_ns, terms->pause_ns);
    return least(most(retry_ns, pause_ns), terms->dry_max_ns);
}

/* What Redis has left, and when it will have what was needed. */
static void learn(struct share *share, const struct share_terms *terms,
                  const struct share_reply *reply, uint64_t now_ns)
{
    uint64_t need = share->asked_need;

    share->remaining = reply->remaining;
    share->reset_at_ns = now_ns + least(reply->reset_ns, WEIR_NEVER - now_ns);
    if (reply->remaining >= share->dry_need || now_ns >= share->dry_until_ns)
        share->dry_until_ns = 0;
    if (reply->too_short)
        share->exact_until_ns = now_ns + least(reply->retry_ns, 2 * terms->life_min_ns);
    if (reply->too_short || reply->remaining >= need)
        return;
    if (share->dry_until_ns != 0 && share->dry_need <= need)
        return;
    share->dry_need = need;
    share->dry_until_ns = now_ns + dry_for_ns(share, terms, reply->retry_ns);
    share->retry_at_ns = now_ns + least(reply->retry_ns, WEIR_NEVER - now_ns);
}

bool share_answered(struct share *share, const struct share_terms *terms,
                    const struct share_reply *reply, uint64_t now_ns)
{
    if (share->asked_id == 0 || reply->id != share->asked_id)
        return false;
    for (int i = 0; i < SHARE_PORTIONS; i++)
        if (share->portion[i].settling)
            memset(&share->portion[i], 0, sizeof share->portion[i]);
    if (share->asked_portion) {
        take_portion(share, reply, now_ns);
        learn(share, terms, reply, now_ns);
        share->used_ns = now_ns;
    }
    share->asked_id = 0;
    return true;
}

uint64_t share_failed(struct share *share, bool executed)
{
    uint64_t lost = 0;

    for (int i = 0; i < SHARE_PORTIONS; i++) {
        struct share_portion *portion = &share->portion[i];

        if (executed && portion->settling) {
            lost += portion->left;
            portion->id = 0;
            portion->left = 0;
        }
        portion->settling = false;
    }
    if (executed && share->asked_portion) {
        struct share_portion *portion = &share->portion[share->asked_place];

        /* How much it was is not known; that none of it is used is what counts. */
        memset(portion, 0, sizeof *portion);
        portion->id = share->asked_id;
        portion->amount = portion->left = 1;
        portion->until_ns = share->sent_ns + SHARE_LIFE_MIN_NS;
    }
    share->asked_id = 0;
    return lost;
}

void share_refused(struct share *share, uint64_t now_ns)
{
    share->exact_until_ns = now_ns + REFUSED_NS;
}

uint64_t share_due(const struct share *share, const struct share_terms *terms)
{
    uint64_t idle_ns = 0;
    bool any = false;

    if (share->asked_id != 0)
        return WEIR_NEVER;
    for (int i = 0; i < SHARE_PORTIONS; i++) {
        const struct share_portion *portion = &share->portion[i];

        if (worth_returning(portion, terms, share->used_ns)) {
            idle_ns = most(idle_ns, most(portion->life_ns, SHARE_LIFE_MIN_NS) / terms->idle_part);
            any = true;
        }
    }
    return any ? share->used_ns + idle_ns : WEIR_NEVER;
}
