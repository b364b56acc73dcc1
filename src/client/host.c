/* SPDX-License-Identifier: Apache-2.0 */
/* see host.h */
#include "client/host.h"

#include <string.h>

#include "base/random.h"
#include "client/instant.h"
#include "client/pace/own.h"
#include "client/retry.h"

/* See host.h. */
#define SPREAD_INTERVALS 8
#define NEXT_UNITS 2
#define CROWD_WINDOWS 3
#define CROWD_MOST 12 /* doublings: a tenth of the horizon does not overflow */

void weir_host_repair(struct weir_host *host, uint64_t now_ns)
{
    bool good = host->pace_count <= WEIR_ADVICE_MAX && host->refused_ns <= now_ns &&
                host->admitted_ns <= now_ns && host->crowd <= CROWD_MOST &&
                host->paused_ns <= now_ns + 2 * WEIR_INSTANT_HORIZON_NS;

    for (uint32_t i = 0; good && i < host->pace_count; i++)
        good = weir_pace_valid(&host->paces[i], now_ns);
    if (!good) {
        host->pace_count = host->refusals = 0;
        host->paused_ns = host->refused_ns = host->admitted_ns = 0;
        host->due = host->crowd = 0;
    }
    if (!weir_own_valid(host->own_ns, now_ns))
        host->own_ns = 0;
    if (!weir_learned_valid(&host->learned, now_ns))
        host->learned = (struct weir_learned){0};
    if (!weir_window_valid(&host->window, now_ns))
        host->window = (struct weir_window){0};
    if (host->budget.spent_milli > WEIR_RETRY_BUDGET_MOST * 1000)
        host->budget.spent_milli = 0;
}

static void forget(struct weir_host *host, uint64_t now_ns)
{
    for (uint32_t i = host->pace_count; i-- > 0;) {
        const struct weir_pace *pace = &host->paces[i];
        if (now_ns > pace->seen_ns + WEIR_HOST_FORGET_NS + pace->window_ns &&
            now_ns >= pace->reset_hi_ns)
            host->paces[i] = host->paces[--host->pace_count];
    }
}

uint64_t weir_host_when(struct weir_host *host, uint64_t expected, uint64_t waiting,
                        uint64_t now_ns)
{
    uint64_t when = host->paused_ns;
    uint64_t one = weir_learned_when(&host->learned, now_ns);
    /* Others use the limit, too: what has room now may not have it. A crowd counts them. */
    bool alone = host->refused_ns == 0 || now_ns - host->refused_ns >= WEIR_HOST_FORGET_NS;

    when = one > when ? one : when;
    forget(host, now_ns);
    for (uint32_t i = 0; i < host->pace_count; i++) {
        struct weir_pace *pace = &host->paces[i];
        bool counted = alone || pace->crowd.state != WEIR_CROWD_NONE;
        one = weir_pace_when(pace, host->sent, counted ? expected : UINT64_MAX, waiting, now_ns);
        when = one > when ? one : when;
    }
    return host->due ? host->paused_ns : when;
}

uint64_t weir_host_send(struct weir_host *host, uint64_t now_ns)
{
    host->used_ns = now_ns;
    host->due = 0;
    for (uint32_t i = 0; i < host->pace_count; i++)
        weir_pace_send(&host->paces[i], now_ns);
    weir_learned_send(&host->learned, now_ns);
    return ++host->sent;
}

static struct weir_pace *pace_of(struct weir_host *host, const struct weir_advice_policy *stated)
{
    struct weir_pace *oldest = &host->paces[0];

    for (uint32_t i = 0; i < host->pace_count; i++) {
        struct weir_pace *pace = &host->paces[i];
        if (!strcmp(pace->name, stated->name))
            return pace;
        if (pace->seen_ns < oldest->seen_ns)
            oldest = pace;
    }
    if (host->pace_count < WEIR_ADVICE_MAX)
        oldest = &host->paces[host->pace_count++];
    weir_pace_begin(oldest, stated);
    return oldest;
}

static void pause_until(struct weir_host *host, uint64_t until_ns)
{
    if (until_ns > host->paused_ns)
        host->paused_ns = until_ns;
}

static void learn_policies(struct weir_host *host, const struct weir_host_result *result,
                           uint64_t *seed)
{
    for (uint32_t i = 0; result->advice && i < result->advice->count; i++) {
        const struct weir_advice_policy *stated = &result->advice->policies[i];
        if (stated->tokens) { /* used up, and no pace of requests; a refusal pauses anyway */
            if (!weir_retry_limited(result->status, result->advice))
                pause_until(host, result->sent_ns + stated->reset_ns);
            continue;
        }
        if (stated->concurrency) {
            if (stated->limit != WEIR_ADVICE_UNKNOWN && stated->limit > 0)
                host->in_flight_most = stated->limit < 1000 ? (uint32_t)stated->limit : 1000;
            continue;
        }
        weir_pace_learn(pace_of(host, stated), stated, result->number, host->sent, result->sent_ns,
                        result->now_ns, seed);
    }
}

/* Whether a policy says that nothing is left, and until when. Where it does not state its window, a
 * wait that was rounded up to the unit says too little: it may be a window or a moment. */
static const struct weir_advice_policy *explanation(const struct weir_advice *advice)
{
    for (uint32_t i = 0; advice && i < advice->count; i++) {
        const struct weir_advice_policy *policy = &advice->policies[i];
        bool says =
            policy->window_ns != WEIR_ADVICE_UNKNOWN || policy->reset_ns > policy->granule_ns;
        if (policy->remaining == 0 && policy->reset_ns != WEIR_ADVICE_UNKNOWN && says)
            return policy;
    }
    return NULL;
}

uint64_t weir_host_stated(const struct weir_host_result *result)
{
    const struct weir_advice *advice = result->advice;
    const struct weir_advice_policy *policy = explanation(advice);
    uint64_t passed = result->now_ns - result->sent_ns;

    if (advice && advice->has_retry_after && advice->retry_after_ns > 0)
        return advice->retry_after_ns;
    if (!policy || policy->reset_ns <= policy->granule_ns || policy->reset_ns <= passed)
        return 0;
    return policy->reset_ns - passed;
}

/* The policy that is known with the longest time from one unit to the next; NULL: none. */
static const struct weir_pace *slowest(const struct weir_host *host, uint64_t *interval_ns)
{
    const struct weir_pace *found = NULL;

    *interval_ns = 0;
    for (uint32_t i = 0; i < host->pace_count; i++) {
        const struct weir_pace *pace = &host->paces[i];
        uint64_t window = pace->window_ns > 0 ? pace->window_ns : pace->longest_ns;
        if (pace->limit > 0 && window / pace->limit > *interval_ns) {
            *interval_ns = window / pace->limit;
            found = pace;
        }
    }
    return found;
}

/* By how much a refused client comes later than stated, at most. */
static uint64_t spread_of(const struct weir_host *host, uint64_t after, uint64_t now_ns)
{
    uint64_t interval, tenth = after / 10;
    const struct weir_pace *pace = slowest(host, &interval);
    uint64_t most = SPREAD_INTERVALS * interval, spread = tenth << host->crowd;

    if (host->crowd > 0 && pace && pace->limit > 1 && pace->window_ns > 0 &&
        after <= NEXT_UNITS * interval && now_ns > host->admitted_ns + pace->window_ns)
        spread = most = CROWD_WINDOWS * pace->window_ns;

    most = most > tenth ? most : tenth;
    most = most < WEIR_INSTANT_HORIZON_NS ? most : WEIR_INSTANT_HORIZON_NS;
    return spread < most ? spread : most;
}

static void pause_host(struct weir_host *host, const struct weir_host_result *result,
                       const struct weir_backoff_spec *backoff, bool had_rate, uint64_t *seed)
{
    struct weir_backoff_spec equal = *backoff;
    uint64_t wait, after = weir_host_stated(result);

    equal.jitter = WEIR_CLIENT_JITTER_EQUAL;
    if (after > 0) {
        wait = after + weir_random_up_to(seed, spread_of(host, after, result->now_ns));
        host->due = 1;
    } else {
        /* A first refusal near a learned rate is answered by the lower rate. */
        uint32_t tries = host->refusals - (host->refusals > 0 && had_rate);
        wait = tries > 0 ? weir_backoff_wait(&equal, tries, 0, seed) : 0;
    }
    pause_until(host, result->now_ns + wait);
}

static void learn_refusal(struct weir_host *host, const struct weir_host_result *result,
                          const struct weir_backoff_spec *backoff, uint64_t *seed)
{
    /* Those that were in flight with the refused one say nothing new, except a longer wait. */
    bool again = result->sent_ns < host->refused_ns;
    bool stated = result->advice && result->advice->has_retry_after;
    bool had_rate = host->learned.rate > 0;

    if (!again) {
        host->refusals++;
        host->refused_ns = result->now_ns;
    }
    /* Where a policy explains it and states its window, refusals in a row say that others came
     * first, and nothing of a rate. */
    const struct weir_advice_policy *why = explanation(result->advice);
    bool counts = !why || (host->refusals > 1 && why->window_ns == WEIR_ADVICE_UNKNOWN);
    weir_learned_refused(&host->learned, result->sent_ns, result->now_ns, counts);
    if (counts)
        weir_window_refused(&host->window, result->sent_ns, result->now_ns);
    for (uint32_t i = 0; !again && i < host->pace_count; i++)
        weir_pace_refused(&host->paces[i]);
    if (!again || stated)
        pause_host(host, result, backoff, had_rate, seed);
    if (!again && host->crowd < CROWD_MOST)
        host->crowd++;
}

static void learn_admitted(struct weir_host *host, const struct weir_host_result *result)
{
    struct weir_learned *learned = &host->learned;

    host->admitted_ns = result->now_ns;
    weir_learned_admitted(learned, result->sent_ns, result->now_ns);
    switch (weir_window_admitted(&host->window, result->sent_ns, result->now_ns, learned->paced)) {
    case WEIR_WINDOW_KNOWN:
        weir_learned_keep(learned, weir_window_rate(&host->window),
                          result->now_ns + weir_window_keep_ns(&host->window), result->now_ns);
        break;
    case WEIR_WINDOW_MEASURE:
        weir_learned_measure(learned, host->window.measuring_ns, result->now_ns);
        break;
    case WEIR_WINDOW_NOTHING:
        break;
    }
}

void weir_host_learn(struct weir_host *host, const struct weir_host_result *result,
                     const struct weir_backoff_spec *backoff, uint64_t *seed)
{
    int status = result->status;
    const struct weir_advice *advice = result->advice;
    bool limited = weir_retry_limited(status, advice);
    bool failed = status == 0 || status == 500 || status == 502 || status == 503 || status == 504;

    learn_policies(host, result, seed);
    if (failed)
        weir_retry_budget_failure(&host->budget);
    else if (!limited)
        weir_retry_budget_success(&host->budget);
    if (limited || status == 503) {
        learn_refusal(host, result, backoff, seed);
    } else if (status != 0) {
        uint64_t after =
            status >= 400 && advice && advice->has_retry_after ? advice->retry_after_ns : 0;
        if (after > 0)
            pause_until(host, result->now_ns + after + weir_random_up_to(seed, after / 10));
        if (result->sent_ns >= host->refused_ns)
            host->refusals = 0;
        host->crowd -= host->crowd > 0;
        learn_admitted(host, result);
    }
}

bool weir_host_probing(const struct weir_host *host)
{
    return host->refusals > 0;
}

static uint64_t wait_of(const struct weir_pace *pace, uint64_t now_ns)
{
    uint64_t when =
        pace->left <= 0 && pace->reset_hi_ns > pace->next_ns ? pace->reset_hi_ns : pace->next_ns;
    return when > now_ns ? when - now_ns : 0;
}

bool weir_host_known(const struct weir_host *host, uint64_t now_ns, struct weir_client_limit *limit)
{
    const struct weir_pace *tightest = NULL;

    *limit = (struct weir_client_limit){WEIR_CLIENT_UNKNOWN, WEIR_CLIENT_UNKNOWN,
                                        WEIR_CLIENT_UNKNOWN, 0};
    for (uint32_t i = 0; i < host->pace_count; i++) {
        const struct weir_pace *pace = &host->paces[i];
        uint64_t interval = weir_pace_interval(pace, now_ns);
        if (!tightest || wait_of(pace, now_ns) > wait_of(tightest, now_ns) ||
            (wait_of(pace, now_ns) == wait_of(tightest, now_ns) &&
             interval > weir_pace_interval(tightest, now_ns)))
            tightest = pace;
    }
    if (tightest) {
        limit->limit = tightest->limit > 0 ? tightest->limit : WEIR_CLIENT_UNKNOWN;
        if (tightest->left != WEIR_PACE_LEFT_UNKNOWN)
            limit->remaining = tightest->left > 0 ? (uint64_t)tightest->left : 0;
        if (tightest->reset_hi_ns > now_ns)
            limit->reset_ns = tightest->reset_hi_ns - now_ns;
        limit->interval_ns = weir_pace_interval(tightest, now_ns);
    }
    if (host->learned.rate > 0) {
        uint64_t interval = (uint64_t)(1e9 / host->learned.rate);
        if (interval > limit->interval_ns)
            limit->interval_ns = interval;
    }
    return tightest || host->learned.rate > 0;
}
