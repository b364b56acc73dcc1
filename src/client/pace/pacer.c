/* SPDX-License-Identifier: Apache-2.0 */
/* see pacer.h */
#include "client/pace/pacer.h"

#include <string.h>

#include "base/random.h"
#include "client/instant.h"

#define MARGIN_PERCENT 102
#define SHARE_WHOLE 700 /* thousandths from which on a measurement is taken for all of it */
#define SHARE_GROWTH 8  /* an eighth at each rise */
#define SHARE_SAMPLE 16 /* units of fall that make a measurement */

static uint64_t share(const struct weir_pace *pace)
{
    return pace->share_milli > 0 ? pace->share_milli : 1000;
}

bool weir_pace_valid(const struct weir_pace *pace, uint64_t now_ns)
{
    uint64_t most = now_ns + WEIR_INSTANT_HORIZON_NS;

    return pace->limit <= WEIR_ADVICE_UNITS_MAX && pace->window_ns <= WEIR_INSTANT_HORIZON_NS &&
           pace->reset_lo_ns <= pace->reset_hi_ns && pace->reset_hi_ns <= most &&
           pace->newest_hi_ns <= most && pace->margin_ns <= WEIR_PACE_MARGIN_NS &&
           pace->next_ns <= most && pace->longest_ns <= WEIR_INSTANT_HORIZON_NS &&
           pace->seen_ns <= now_ns && pace->share_milli <= 1000 &&
           weir_crowd_valid(&pace->crowd, most) && memchr(pace->name, '\0', sizeof pace->name) &&
           (pace->left == WEIR_PACE_LEFT_UNKNOWN ||
            (pace->left <= (int64_t)WEIR_ADVICE_UNITS_MAX &&
             pace->left >= -(int64_t)WEIR_ADVICE_UNITS_MAX));
}

void weir_pace_begin(struct weir_pace *pace, const struct weir_advice_policy *stated)
{
    *pace = (struct weir_pace){.stated = WEIR_ADVICE_UNKNOWN, .left = WEIR_PACE_LEFT_UNKNOWN};
    memcpy(pace->name, stated->name, sizeof pace->name);
}

/* The policy's own pace; 0: not known. */
static uint64_t nominal(const struct weir_pace *pace)
{
    if (pace->limit == 0 || pace->window_ns == 0)
        return 0;
    return pace->window_ns / pace->limit / 100 * MARGIN_PERCENT * 1000 / share(pace);
}

/* Where the window is not known, it is at least as long as the longest wait for a reset that was
 * stated. */
static uint64_t at_least(const struct weir_pace *pace)
{
    if (pace->limit == 0)
        return 0;
    return pace->longest_ns / pace->limit / 100 * MARGIN_PERCENT * 1000 / share(pace);
}

uint64_t weir_pace_interval(const struct weir_pace *pace, uint64_t now_ns)
{
    uint64_t own = nominal(pace), slow, fast, least = own > 0 ? 0 : at_least(pace);

    if (pace->crowd.state != WEIR_CROWD_NONE)
        return weir_crowd_interval(&pace->crowd, pace->window_ns, pace->margin_ns);

    if (pace->left == WEIR_PACE_LEFT_UNKNOWN || pace->left <= 0 || pace->reset_hi_ns <= now_ns)
        return own + least;
    /* One more, so that the last one does not come when the window ends. */
    uint64_t left = (uint64_t)pace->left * share(pace) / 1000 + 1;
    uint64_t hi = own > 0 && pace->newest_hi_ns > now_ns ? pace->newest_hi_ns : pace->reset_hi_ns;
    slow = (hi - now_ns) / left;
    fast = pace->reset_lo_ns > now_ns ? (pace->reset_lo_ns - now_ns) / left : 0;
    if (own == 0)
        return fast / 2 + slow / 2 > least ? fast / 2 + slow / 2 : least;
    /* A little faster is not worth the risk: the reset may be one that moves. */
    return own < fast ? fast : own / 4 * 3 > slow && !pace->moving ? slow : own;
}

/* The window has ended, as far as the client knows: the next one has begun. */
static void roll(struct weir_pace *pace, uint64_t sent, uint64_t now_ns)
{
    if (pace->reset_hi_ns == 0 || now_ns < pace->reset_hi_ns + pace->margin_ns)
        return;
    pace->left = pace->limit > 0 ? (int64_t)pace->limit : WEIR_PACE_LEFT_UNKNOWN;
    pace->stated = WEIR_ADVICE_UNKNOWN;
    pace->number = sent; /* answers to older requests are of the window before */
    if (pace->window_ns > 0) {
        uint64_t windows = (now_ns - pace->reset_hi_ns) / pace->window_ns + 1;
        pace->reset_hi_ns += windows * pace->window_ns;
        pace->reset_lo_ns = now_ns; /* if the reset moves, a window later would be too late */
        pace->newest_hi_ns = now_ns + pace->window_ns;
    } else {
        pace->reset_hi_ns = pace->reset_lo_ns = pace->newest_hi_ns = 0;
    }
}

uint64_t weir_pace_when(struct weir_pace *pace, uint64_t sent, uint64_t expected, uint64_t waiting,
                        uint64_t now_ns)
{
    roll(pace, sent, now_ns);
    if (pace->crowd.state != WEIR_CROWD_NONE)
        return weir_crowd_when(&pace->crowd, expected, waiting, now_ns);
    if (pace->left == WEIR_PACE_LEFT_UNKNOWN)
        return pace->next_ns;
    if (pace->left <= 0) {
        bool kept = nominal(pace) > 0 && share(pace) == 1000;
        uint64_t least = kept ? pace->reset_lo_ns : pace->reset_hi_ns;
        least += least > 0 ? pace->margin_ns : 0;
        return pace->next_ns > least ? pace->next_ns : least;
    }
    if (expected <= (uint64_t)pace->left * share(pace) / 1000)
        return now_ns;
    return pace->next_ns;
}

static void set_next(struct weir_pace *pace, uint64_t next_ns, uint64_t now_ns)
{
    uint64_t most = now_ns + WEIR_INSTANT_HORIZON_NS;
    pace->next_ns = next_ns < most ? next_ns : most;
}

void weir_pace_send(struct weir_pace *pace, uint64_t now_ns)
{
    uint64_t slack = WEIR_PACE_SLACK_NS;

    if (pace->window_ns > 0)
        weir_crowd_send(&pace->crowd, pace->window_ns, pace->margin_ns, now_ns);
    if (pace->left != WEIR_PACE_LEFT_UNKNOWN)
        pace->left--;
    uint64_t interval = weir_pace_interval(pace, now_ns);

    if (pace->window_ns > 0 && pace->window_ns / 20 < slack)
        slack = pace->window_ns / 20;
    bool late = pace->next_ns <= now_ns && pace->next_ns + slack > now_ns;
    uint64_t from = late ? pace->next_ns : now_ns; /* or idle, or it was not waited for */
    set_next(pace, from + interval, now_ns);
}

/* Measures the part of the fall that is this client's. */
static void measure_share(struct weir_pace *pace, uint64_t own, uint64_t fall)
{
    pace->own += own < 1000000 ? (uint32_t)own : 1000000;
    pace->fall += fall < 1000000 ? (uint32_t)fall : 1000000;
    if (pace->fall < SHARE_SAMPLE)
        return;
    uint64_t part = (uint64_t)pace->own * 1000 / pace->fall;
    part = part > SHARE_WHOLE ? 1000 : part; /* answers come in another order */
    part = (share(pace) + part) / 2;
    part = part > 900 ? 1000 : part;
    pace->share_milli = part > WEIR_PACE_SHARE_LEAST ? (uint32_t)part : WEIR_PACE_SHARE_LEAST;
    pace->own = pace->fall = 0;
}

/* The times of the reset: narrowed by an answer of the same window, else replaced. */
static void learn_reset(struct weir_pace *pace, uint64_t lo_ns, uint64_t hi_ns, bool same)
{
    if (same && pace->reset_hi_ns > 0 && lo_ns <= pace->reset_hi_ns && hi_ns >= pace->reset_lo_ns) {
        pace->reset_lo_ns = lo_ns > pace->reset_lo_ns ? lo_ns : pace->reset_lo_ns;
        pace->reset_hi_ns = hi_ns < pace->reset_hi_ns ? hi_ns : pace->reset_hi_ns;
        return;
    }
    pace->reset_lo_ns = lo_ns;
    pace->reset_hi_ns = hi_ns;
}

/* The count rises while much is left: others use less than it seemed. */
static void grow_share(struct weir_pace *pace, uint64_t remaining)
{
    uint64_t now = share(pace), grown = now + now / SHARE_GROWTH + 1;

    pace->own = pace->fall = 0;
    if (pace->limit > 0 && remaining > pace->limit / 4)
        pace->share_milli = grown < 1000 ? (uint32_t)grown : 1000;
}

static void learn_remaining(struct weir_pace *pace, uint64_t remaining, uint64_t number,
                            uint64_t sent)
{
    if (pace->stated != WEIR_ADVICE_UNKNOWN && remaining <= pace->stated && number > pace->number)
        measure_share(pace, number - pace->number, pace->stated - remaining);
    else
        grow_share(pace, remaining);
    pace->stated = remaining;
    pace->number = number;
    pace->left = (int64_t)remaining - (int64_t)(sent - number);
}

static void learn_crowd(struct weir_pace *pace, uint64_t remaining, uint64_t unseen,
                        uint64_t now_ns, uint64_t *seed)
{
    struct weir_crowd_view view = {pace->limit,       pace->window_ns, remaining, pace->reset_lo_ns,
                                   pace->reset_hi_ns, pace->margin_ns, now_ns,    unseen};

    if (pace->limit == 0 || pace->window_ns == 0 || pace->inferred || pace->reset_hi_ns == 0)
        return;
    if (weir_crowd_learn(&pace->crowd, &view, seed))
        pace->share_milli = 1000;
}

void weir_pace_refused(struct weir_pace *pace)
{
    if (pace->stated == 0)
        weir_crowd_refused(&pace->crowd);
}

void weir_pace_learn(struct weir_pace *pace, const struct weir_advice_policy *stated,
                     uint64_t number, uint64_t sent, uint64_t sent_ns, uint64_t now_ns,
                     uint64_t *seed)
{
    bool first = pace->seen_ns == 0;

    if (number <= pace->number || number > sent)
        return; /* a newer answer has been seen */
    pace->seen_ns = now_ns;
    if (stated->limit != WEIR_ADVICE_UNKNOWN)
        pace->limit = stated->limit;
    if (stated->window_ns != WEIR_ADVICE_UNKNOWN) {
        pace->window_ns = stated->window_ns;
        pace->inferred = 0;
    }
    bool renewed = stated->remaining != WEIR_ADVICE_UNKNOWN &&
                   pace->stated != WEIR_ADVICE_UNKNOWN && stated->remaining > pace->stated;
    if (stated->reset_ns != WEIR_ADVICE_UNKNOWN) {
        uint64_t hi = sent_ns + stated->reset_ns;
        uint64_t lo = hi > stated->granule_ns ? hi - stated->granule_ns : 0;
        lo = lo < sent_ns ? sent_ns : lo;
        if (lo - sent_ns > pace->longest_ns)
            pace->longest_ns = lo - sent_ns;
        /* The count begins anew: the two resets are a window apart. */
        if (renewed && pace->reset_hi_ns > 0 && hi > pace->reset_hi_ns + stated->granule_ns &&
            stated->reset_ns + stated->granule_ns >= hi - pace->reset_hi_ns &&
            (pace->window_ns == 0 || pace->inferred)) {
            pace->window_ns = hi - pace->reset_hi_ns;
            pace->inferred = 1;
        }
        if (!renewed && pace->reset_hi_ns > 0 &&
            hi > pace->reset_hi_ns + stated->granule_ns + (now_ns - sent_ns))
            pace->moving = 1;
        learn_reset(pace, lo, hi, !renewed);
        pace->newest_hi_ns = hi;
        pace->margin_ns = (now_ns - sent_ns) / 4;
        if (pace->margin_ns > WEIR_PACE_MARGIN_NS)
            pace->margin_ns = WEIR_PACE_MARGIN_NS;
    } else if (pace->reset_hi_ns <= now_ns) {
        pace->reset_lo_ns = pace->reset_hi_ns = pace->newest_hi_ns = 0;
    }
    if (stated->remaining != WEIR_ADVICE_UNKNOWN) {
        learn_remaining(pace, stated->remaining, number, sent);
        learn_crowd(pace, stated->remaining, first ? sent : 0, now_ns, seed);
    }
    if (first) { /* clients that start together do not go on together */
        uint64_t interval = weir_pace_interval(pace, now_ns);
        set_next(pace, sent_ns + interval + weir_random_up_to(seed, interval), now_ns);
    }
}
