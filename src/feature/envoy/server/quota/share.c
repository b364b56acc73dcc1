/* SPDX-License-Identifier: Apache-2.0 */
/* see share.h */
#include "feature/envoy/server/quota/share.h"

#define MS UINT64_C(1000000)
/* Over what time a window's rest may be used up: a minute at most. That of a sliding window grows
 * all the time, and what is kept back for later is lost: so it has an eighth of the window. */
#define SPREAD_MAX_MS UINT64_C(60000)
#define SLIDING_SPREAD_PART 8
/* Before its client lets it expire, a share that cannot be prolonged is replaced by a denial. */
#define DENY_BEFORE_MS 1500
#define SHARE_AGE_MAX_MS UINT64_C(86400000)

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t later_by(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

/* a / b, rounded up. */
static uint64_t divide_up(uint64_t a, uint64_t b)
{
    return a / b + (a % b != 0);
}

/* --- Supplies --------------------------------------------------------------------------------- */

bool weir_quota_assignable(const struct weir_limit *limit)
{
    switch (limit->spec.algorithm) {
    case WEIR_FIXED_WINDOW:
    case WEIR_SLIDING_WINDOW:
        return limit->segment_ns >= WEIR_QUOTA_SEGMENT_MIN_MS * MS;
    case WEIR_TOKEN_BUCKET:
    case WEIR_GCRA:
    case WEIR_LEAKY_BUCKET:
        return limit->spec.rate && limit->depth_ns >= WEIR_QUOTA_DEPTH_MIN_MS * MS;
    default:
        return false;
    }
}

struct weir_quota_supply weir_quota_supply_of(const struct weir_limit *limit,
                                              const struct weir_report *report, uint64_t unit,
                                              const struct weir_quota_moment *moment)
{
    struct weir_quota_supply supply = {
        .unit = unit,
        .remaining = report->remaining,
        .rate = limit->spec.rate,
        .window_ms = limit->spec.window_ns / MS,
        .drift_ms = moment->drift_ms,
        .bucket = limit->segment_ns == 0,
    };
    if (supply.bucket) {
        supply.fresh_ms = (moment->local_ns + report->reset_after_ns) / MS;
    } else {
        uint64_t left_ns = limit->segment_ns - moment->store_ns % limit->segment_ns;
        left_ns = later_by(left_ns, moment->drift_ms * MS);
        supply.end_ms = (moment->local_ns + left_ns) / MS;
    }
    supply.spread_ms = SPREAD_MAX_MS;
    if (limit->spec.algorithm == WEIR_SLIDING_WINDOW)
        supply.spread_ms = smaller(SPREAD_MAX_MS, supply.window_ms / SLIDING_SPREAD_PART);
    return supply;
}

bool weir_quota_holds(const struct weir_limit *limit, uint64_t peeked_ns, uint64_t charged_ns)
{
    if (charged_ns < peeked_ns)
        return false;
    return !limit->segment_ns || charged_ns / limit->segment_ns == peeked_ns / limit->segment_ns;
}

/* What a bucket is charged so that its state is that of `ends_ms`. */
static uint64_t supply_pad(const struct weir_quota_supply *supply, uint64_t ends_ms,
                           uint64_t now_ms)
{
    uint64_t from_ms = supply->fresh_ms > now_ms ? supply->fresh_ms : now_ms;
    if (!supply->bucket || ends_ms + supply->drift_ms <= from_ms)
        return 0;
    return divide_up((ends_ms + supply->drift_ms - from_ms) * supply->rate, supply->window_ms);
}

uint64_t weir_quota_supply_rate(const struct weir_quota_supply *supply, uint64_t held,
                                uint64_t now_ms)
{
    uint64_t rest = supply->remaining, left_ms = supply->spread_ms;
    double per_fill;
    if (supply->bucket) {
        uint64_t ends_ms = now_ms + WEIR_QUOTA_TTL_S * 1000 + WEIR_QUOTA_LATE_MS;
        double rate = (double)supply->rate / (double)supply->window_ms;
        rest = later_by(rest, supply_pad(supply, ends_ms, now_ms));
        double saved = (double)rest - rate * (double)WEIR_QUOTA_RENEW_MS;
        per_fill = rate * WEIR_QUOTA_FILL_MS + (saved > 0 ? saved : 0);
    } else {
        left_ms = smaller(left_ms, later_by(supply->end_ms, now_ms) + 1);
        per_fill = ((double)rest + (double)held / 1000 * (double)supply->unit) *
                   WEIR_QUOTA_FILL_MS / (double)left_ms;
    }
    per_fill = per_fill * 1000 / (double)supply->unit;
    return per_fill < WEIR_QUOTA_PER_FILL_MAX * 1000.0 ? (uint64_t)per_fill
                                                       : WEIR_QUOTA_PER_FILL_MAX * UINT64_C(1000);
}

uint64_t weir_quota_supply_steady(const struct weir_quota_supply *supply)
{
    double per_ms = (double)supply->rate / (double)supply->window_ms / (double)supply->unit;
    double most = WEIR_QUOTA_PER_FILL_MAX * 1000.0, rate = per_ms * WEIR_QUOTA_FILL_MS * 1000;
    return (uint64_t)(rate < most ? rate : most);
}

uint64_t weir_quota_share_rest(const struct weir_quota_share *share, uint64_t now_ms)
{
    if (share->denied)
        return 0;
    return share->per_fill * later_by(share->ends_ms, now_ms) / (WEIR_QUOTA_FILL_MS / 1000);
}

/* --- Charges ---------------------------------------------------------------------------------- */

/* What a share admits from when it was full until `until_ms`. */
static uint64_t share_total(const struct weir_quota_share *share, uint64_t until_ms)
{
    return share->max_tokens +
           share->per_fill * (until_ms - share->started_ms) / WEIR_QUOTA_FILL_MS;
}

/* Requests that are charged when `next` follows `held`: see share.h. */
static uint64_t requests_of(const struct weir_quota_share *held, const struct weir_quota_plan *plan,
                            bool bucket, uint64_t now_ms)
{
    const struct weir_quota_share *next = &plan->share;
    if (held->ends_ms <= now_ms)
        return share_total(next, next->ends_ms);
    uint64_t more_ms = later_by(next->ends_ms, held->ends_ms);
    if (plan->move == WEIR_QUOTA_EQUAL && !bucket)
        return share_total(next, next->ends_ms) - share_total(held, held->ends_ms);
    if (plan->move == WEIR_QUOTA_EQUAL)
        return next->max_tokens + next->per_fill * more_ms / WEIR_QUOTA_FILL_MS;
    uint64_t both_ms = smaller(held->ends_ms, next->ends_ms) - now_ms;
    return next->max_tokens +
           divide_up(next->per_fill * more_ms + later_by(next->per_fill, held->per_fill) * both_ms,
                     WEIR_QUOTA_FILL_MS);
}

/* Fills in the costs of a plan. False: a supply does not have that much. */
static bool plan_costs(const struct weir_quota_plan *plan, const struct weir_quota_share *held,
                       const struct weir_quota_supply *supplies, uint32_t count, uint64_t now_ms,
                       uint64_t *costs)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct weir_quota_supply *supply = &supplies[i];
        uint64_t requests = requests_of(held, plan, supply->bucket, now_ms);
        uint64_t pad = supply_pad(supply, plan->share.ends_ms, now_ms);
        if (pad > supply->remaining || requests > (supply->remaining - pad) / supply->unit)
            return false;
        costs[i] = requests * supply->unit + pad;
    }
    return true;
}

/* --- Plans ------------------------------------------------------------------------------------ */

static void plan_deny(struct weir_quota_plan *plan, const struct weir_quota_share *held,
                      uint64_t now_ms)
{
    bool lasts = held->expires_ms > now_ms + DENY_BEFORE_MS;
    plan->move = lasts ? WEIR_QUOTA_WAIT : WEIR_QUOTA_DENY;
    plan->share = *held;
    plan->share.denied = true;
    plan->share.expires_ms = now_ms + WEIR_QUOTA_TTL_S * 1000;
    plan->ttl_s = WEIR_QUOTA_TTL_S;
    plan->again_ms = 0;
}

/* A share of a rate that starts now. */
static void plan_change(struct weir_quota_plan *plan, const struct weir_quota_share *held,
                        uint64_t per_fill, uint64_t ends_ms, uint64_t now_ms)
{
    bool same = held->ends_ms > now_ms && !held->denied && held->per_fill == per_fill;
    uint64_t rate = same && per_fill > 1 ? per_fill - 1 : same ? 2 : per_fill;
    plan->move = WEIR_QUOTA_CHANGED;
    plan->share =
        (struct weir_quota_share){.max_tokens = (uint32_t)(rate / WEIR_QUOTA_TOKENS_PART) + 1,
                                  .per_fill = (uint32_t)rate,
                                  .started_ms = now_ms,
                                  .ends_ms = ends_ms};
}

/* The highest rate, up to `per_fill`, that the supplies allow. */
static bool plan_most(struct weir_quota_plan *plan, const struct weir_quota_share *held,
                      const struct weir_quota_supply *supplies, uint32_t count, uint64_t per_fill,
                      uint64_t ends_ms, uint64_t now_ms, uint64_t *costs)
{
    uint64_t low = 0, high = per_fill; /* low fits, or is 0; what is above high does not */
    while (low < high) {
        uint64_t middle = low + (high - low + 1) / 2;
        plan_change(plan, held, middle, ends_ms, now_ms);
        if (plan_costs(plan, held, supplies, count, now_ms, costs))
            low = middle;
        else
            high = middle - 1;
    }
    if (!low)
        return false;
    plan_change(plan, held, low, ends_ms, now_ms);
    return plan_costs(plan, held, supplies, count, now_ms, costs);
}

/* Whether what is held is near enough to the rate that is required. After a day it is begun anew:
 * share_total counts from its beginning, in 64 bits. */
static bool still_fits(const struct weir_quota_share *held, uint64_t per_fill, uint64_t now_ms)
{
    return !held->denied && held->ends_ms > now_ms && held->expires_ms > now_ms + 1000 &&
           held->started_ms + SHARE_AGE_MAX_MS > now_ms &&
           held->per_fill <= per_fill + per_fill / 5 + 3 &&
           held->per_fill + held->per_fill / 20 >= per_fill;
}

void weir_quota_plan(struct weir_quota_plan *plan, const struct weir_quota_share *held,
                     const struct weir_quota_supply *supplies, uint32_t count, uint64_t per_fill,
                     uint64_t now_ms, uint64_t *costs)
{
    uint64_t life_ms = WEIR_QUOTA_TTL_S * 1000 + WEIR_QUOTA_LATE_MS;
    for (uint32_t i = 0; i < count; i++)
        if (!supplies[i].bucket)
            life_ms = smaller(life_ms, later_by(supplies[i].end_ms, now_ms));
    uint64_t ttl_s = later_by(life_ms, WEIR_QUOTA_LATE_MS) / 1000;
    uint64_t ends_ms = now_ms + ttl_s * 1000 + WEIR_QUOTA_LATE_MS;
    if (!ttl_s) {
        plan_deny(plan, held, now_ms);
        plan->again_ms = now_ms + life_ms;
        return;
    }
    per_fill = smaller(per_fill, WEIR_QUOTA_PER_FILL_MAX);
    plan->ttl_s = (uint32_t)ttl_s;
    plan->move = WEIR_QUOTA_EQUAL;
    plan->share = *held;
    plan->share.ends_ms = ends_ms > held->ends_ms ? ends_ms : held->ends_ms;
    bool good = still_fits(held, per_fill, now_ms);
    bool equal =
        good && ends_ms > held->ends_ms && plan_costs(plan, held, supplies, count, now_ms, costs);
    /* A lower rate now would waste what is charged already, and later there may be more. */
    bool wait = good && !equal && held->expires_ms > now_ms + DENY_BEFORE_MS;
    if (wait ||
        (!equal && !plan_most(plan, held, supplies, count, per_fill, ends_ms, now_ms, costs))) {
        plan_deny(plan, held, now_ms);
        return;
    }
    plan->share.expires_ms = now_ms + ttl_s * 1000;
}
