/* SPDX-License-Identifier: Apache-2.0 */
/* see reservation_model.h */
#include "reservation_model.h"

#include <string.h>

#define SECOND UINT64_C(1000000000)
#define QUOTA_DAY 400
#define QUOTA_OVER 80 /* rollover: 20% */

static uint64_t start_ns;

const struct generation generations[2] = {
    {.has = {true, true, true, true, true, true}},
    {.has = {true, true, true, false, true, true}},
};

/* By generation and state; the quota is not among them. */
static const struct weir_limit_spec specs[2][STATES] = {
    {[WINDOW] = {.algorithm = WEIR_FIXED_WINDOW, .rate = 1000, .window_ns = HOUR_NS},
     [LOG] = {.algorithm = WEIR_SLIDING_LOG, .rate = 700, .window_ns = HOUR_NS},
     [BUCKET] = {.algorithm = WEIR_TOKEN_BUCKET, .rate = 60, .window_ns = HOUR_NS, .burst = 800},
     [PAIR_HOUR] = {.algorithm = WEIR_FIXED_WINDOW, .rate = 500, .window_ns = HOUR_NS},
     [PAIR_DAY] = {.algorithm = WEIR_FIXED_WINDOW, .rate = 4000, .window_ns = DAY_NS}},
    {[WINDOW] = {.algorithm = WEIR_FIXED_WINDOW, .rate = 1500, .window_ns = HOUR_NS},
     [LOG] = {.algorithm = WEIR_SLIDING_LOG, .rate = 400, .window_ns = HOUR_NS},
     [BUCKET] = {.algorithm = WEIR_TOKEN_BUCKET, .rate = 60, .window_ns = HOUR_NS, .burst = 800},
     [PAIR_HOUR] = {.algorithm = WEIR_FIXED_WINDOW, .rate = 500, .window_ns = HOUR_NS},
     [PAIR_DAY] = {.algorithm = WEIR_FIXED_WINDOW, .rate = 3000, .window_ns = DAY_NS}},
};
static const uint64_t debt_percent[STATES] = {
    [WINDOW] = 50, [LOG] = 0, [BUCKET] = 100, [QUOTA] = 0, [PAIR_HOUR] = 100, [PAIR_DAY] = 100};

static uint64_t day_of(uint64_t t)
{
    return (t - start_ns) / DAY_NS;
}

static uint64_t hour_of(uint64_t t)
{
    return (t - start_ns) / HOUR_NS;
}

static bool gives_back(int state)
{
    return state == BUCKET || state == QUOTA;
}

void account_open(struct account *account, uint64_t start)
{
    static const struct weir_limit_spec caps[STATES] = {
        [BUCKET] = {.algorithm = WEIR_SLIDING_WINDOW,
                    .rate = 60, /* 100% */
                    .window_ns = HOUR_NS,
                    .strict = true},
        [QUOTA] = {.algorithm = WEIR_SLIDING_WINDOW,
                   .rate = QUOTA_DAY / 10,
                   .window_ns = DAY_NS,
                   .strict = true}};
    memset(account, 0, sizeof *account);
    start_ns = start;
    for (int i = 0; i < STATES; i++) {
        model_init(&account->states[i], &specs[0][i]);
        if (gives_back(i))
            model_init(&account->caps[i], &caps[i]);
    }
}

void account_close(struct account *account)
{
    for (int i = 0; i < STATES; i++) {
        model_free(&account->states[i]);
        model_free(&account->caps[i]);
    }
}

/* Used stays used: windows and logs keep their counts, the bucket is the same in both. */
void account_reload(struct account *account, int generation)
{
    for (int i = 0; i < STATES; i++)
        if (i != QUOTA)
            account->states[i].spec.rate = specs[generation][i].rate;
}

/* --- One state -------------------------------------------------------------------------------- */

static uint64_t quota_capacity(const struct account *account, uint64_t day)
{
    uint64_t before = day > 0 ? account->days[day - 1] : 0;
    uint64_t left = before < QUOTA_DAY ? QUOTA_DAY - before : 0;
    return QUOTA_DAY + (left < QUOTA_OVER ? left : QUOTA_OVER);
}

uint64_t account_capacity(const struct account *account, int state)
{
    return state == QUOTA ? QUOTA_DAY + QUOTA_OVER : model_capacity(&account->states[state]);
}

/* The largest cost that a capacity of `more` above its own admits. */
static uint64_t room(const struct account *account, int state, uint64_t now_ns, uint64_t more)
{
    struct model deeper = account->states[state];
    if (state == QUOTA) {
        uint64_t used = account->days[day_of(now_ns)];
        uint64_t capacity = quota_capacity(account, day_of(now_ns)) + more;
        return used < capacity ? capacity - used : 0;
    }
    if (state == BUCKET)
        deeper.spec.burst += more;
    else
        deeper.spec.rate += more;
    uint64_t low = 0, high = model_capacity(&deeper);
    while (low < high) {
        uint64_t middle = low + (high - low + 1) / 2;
        if (model_admits(&deeper, now_ns, middle))
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

uint64_t account_remaining(const struct account *account, int state, uint64_t now_ns)
{
    return room(account, state, now_ns, 0);
}

static void charge(struct account *account, int state, uint64_t now_ns, uint64_t cost)
{
    const struct weir_use use = {.now_ns = now_ns, .cost = cost};
    if (state == QUOTA)
        account->days[day_of(now_ns)] += cost;
    else
        model_charge(&account->states[state], &use);
}

static void refund(struct account *account, int state, uint64_t now_ns, uint64_t at_ns,
                   uint64_t cost)
{
    const struct weir_use use = {.now_ns = now_ns, .charged_at_ns = at_ns, .cost = cost};
    uint64_t *day = &account->days[day_of(at_ns)];
    if (state != QUOTA)
        model_refund(&account->states[state], &use);
    else if (day_of(at_ns) + 1 >= day_of(now_ns))
        *day -= cost < *day ? cost : *day;
}

/* --- Requests and settlements ----------------------------------------------------------------- */

struct charged account_price(uint64_t cost, uint64_t log, uint64_t bucket)
{
    return (struct charged){.estimate = cost,
                            .unit = {[WINDOW] = WINDOW_UNIT,
                                     [LOG] = log,
                                     [BUCKET] = bucket,
                                     [QUOTA] = 1,
                                     [PAIR_HOUR] = 1,
                                     [PAIR_DAY] = 1}};
}

bool account_admits(const struct account *account, const struct generation *now, uint64_t now_ns,
                    const struct charged *price)
{
    for (int i = 0; i < STATES; i++)
        if (now->has[i] && room(account, i, now_ns, 0) < price->estimate * price->unit[i])
            return false;
    return true;
}

void account_charge(struct account *account, const struct generation *now, uint64_t now_ns,
                    struct charged *price)
{
    price->at_ns = now_ns;
    for (int i = 0; i < STATES; i++) {
        price->has[i] = now->has[i];
        if (now->has[i])
            charge(account, i, now_ns, price->estimate * price->unit[i]);
    }
    account->truth[hour_of(now_ns)] += price->estimate * WINDOW_UNIT;
}

/* Of one state that was charged. */
static void debit(struct account *account, int state, uint64_t now_ns, uint64_t wanted)
{
    uint64_t debt = account_capacity(account, state) * debt_percent[state] / 100;
    uint64_t most = room(account, state, now_ns, debt);
    charge(account, state, now_ns, wanted < most ? wanted : most);
    if (state == WINDOW) {
        account->truth[hour_of(now_ns)] += wanted;
        account->given[hour_of(now_ns)] += wanted > most ? wanted - most : 0;
    }
}

void account_debit(struct account *account, const struct generation *now, uint64_t now_ns,
                   const struct charged *charged, uint64_t cost)
{
    for (int i = 0; i < STATES; i++)
        if (now->has[i] && charged->has[i])
            debit(account, i, now_ns, (cost - charged->estimate) * charged->unit[i]);
}

/* Of one state that was charged. */
static void give_back(struct account *account, int state, uint64_t now_ns,
                      const struct charged *charged, uint64_t units, bool lost)
{
    if (!lost)
        refund(account, state, now_ns, charged->at_ns, units);
    if (state != WINDOW)
        return;
    account->truth[hour_of(charged->at_ns)] -= units;
    if (lost)
        account->kept[hour_of(charged->at_ns)] += units;
}

void account_return(struct account *account, const struct generation *now, uint64_t now_ns,
                    const struct charged *charged, uint64_t cost, bool lost)
{
    for (int i = 0; i < STATES; i++)
        if (charged->has[i] && now->has[i])
            give_back(account, i, now_ns, charged, (charged->estimate - cost) * charged->unit[i],
                      lost);
}

void account_correct(struct account *account, const struct generation *now, uint64_t now_ns,
                     const struct charged *charged, const uint64_t truth[STATES], unsigned set,
                     bool debits)
{
    for (int i = 0; i < STATES; i++) {
        if (!now->has[i] || !charged->has[i] || (set >> i & 1) == 0)
            continue;
        if (debits && truth[i] > charged->unit[i])
            debit(account, i, now_ns, (truth[i] - charged->unit[i]) * charged->estimate);
        else if (!debits && truth[i] < charged->unit[i])
            give_back(account, i, now_ns, charged,
                      (charged->unit[i] - truth[i]) * charged->estimate, false);
    }
}

unsigned account_outcome_capped(const struct generation *now, const struct charged *charged)
{
    unsigned set = 0;
    for (int i = 0; i < STATES; i++)
        if (gives_back(i) && now->has[i] && charged->has[i])
            set |= 1U << i;
    return set;
}

unsigned account_outcome_admits(struct account *account, uint64_t now_ns,
                                const struct charged *charged, unsigned among)
{
    unsigned set = 0;
    for (int i = 0; i < STATES; i++)
        if ((among >> i & 1) != 0 &&
            model_admits(&account->caps[i], now_ns, charged->estimate * charged->unit[i]))
            set |= 1U << i;
    return set;
}

void account_outcome_charge(struct account *account, uint64_t now_ns, const struct charged *charged,
                            unsigned set)
{
    for (int i = 0; i < STATES; i++) {
        const struct weir_use use = {.now_ns = now_ns,
                                     .cost = charged->estimate * charged->unit[i]};
        if ((set >> i & 1) != 0)
            model_charge(&account->caps[i], &use);
    }
}

void account_outcome_return(struct account *account, uint64_t now_ns, const struct charged *charged,
                            unsigned set, bool lost)
{
    for (int i = 0; i < STATES; i++)
        if ((set >> i & 1) != 0)
            give_back(account, i, now_ns, charged, charged->estimate * charged->unit[i], lost);
}

/* --- The operator ----------------------------------------------------------------------------- */

void account_grant(struct account *account, int state, uint64_t now_ns, uint64_t units)
{
    refund(account, state, now_ns, now_ns, units);
    if (state == WINDOW)
        account->given[hour_of(now_ns)] += units;
}

void account_reset(struct account *account, int state, uint64_t now_ns)
{
    if (state == WINDOW)
        account->given[hour_of(now_ns)] += account->truth[hour_of(now_ns)];
    if (state == QUOTA)
        memset(account->days, 0, sizeof account->days);
    else
        model_forget(&account->states[state]);
}

void account_bounds(const struct account *account, uint64_t now_ns, uint64_t *least, uint64_t *most)
{
    uint64_t hour = hour_of(now_ns), truth = account->truth[hour];
    *least = truth > account->given[hour] ? truth - account->given[hour] : 0;
    *most = truth + account->kept[hour];
}
