/* SPDX-License-Identifier: Apache-2.0 */
/* see learned.h */
#include "client/pace/learned.h"

#define S_NS 1e9
#define DECREASE 0.07
#define DECREASE_AGAIN 0.4
#define MEASURED_LEAST 10             /* requests that make a measurement */
#define EARLY 4                       /* measurements that may be far too low */
#define LONG_NS UINT64_C(10000000000) /* or so long a time, with any */
#define FAR_LOWER 0.7                 /* than the rate that was refused */
#define TWICE 2                       /* what was admitted lately, in which no window was used up */
#define KEPT 0.02                     /* below a measured rate: what a margin costs */
/* Above the rate that was refused: a tenth of a window is a storm. */
#define MEASURING 0.1
/* The shortest time over which what was admitted is taken for a rate. */
#define LEAST_PERIOD_NS UINT64_C(100000000)

static double clamp(double rate)
{
    /* Not a number fails both comparisons. */
    return rate > WEIR_LEARNED_LEAST ? (rate < WEIR_LEARNED_MOST ? rate : WEIR_LEARNED_MOST)
                                     : WEIR_LEARNED_LEAST;
}

/* One that clamp has made, or none. */
static bool is_rate(double rate)
{
    return rate >= WEIR_LEARNED_LEAST ? rate <= WEIR_LEARNED_MOST : rate >= 0 && rate <= 0;
}

bool weir_learned_valid(const struct weir_learned *learned, uint64_t now_ns)
{
    bool rate = is_rate(learned->rate) && is_rate(learned->ceiling) && learned->decrease >= 0 &&
                learned->decrease < 1;

    return rate && learned->decreased_ns <= now_ns && learned->began_ns <= now_ns &&
           learned->refused_ns <= now_ns && learned->kept_ns <= now_ns + WEIR_LEARNED_FORGET_NS &&
           learned->refused >= 0 && learned->refused <= WEIR_LEARNED_MOST &&
           learned->next_ns <= now_ns + 2 * WEIR_LEARNED_FORGET_NS;
}

uint64_t weir_learned_when(struct weir_learned *learned, uint64_t now_ns)
{
    uint64_t since_ns =
        learned->kept_ns > learned->decreased_ns ? learned->kept_ns : learned->decreased_ns;
    if (learned->rate > 0 && now_ns > since_ns + WEIR_LEARNED_FORGET_NS) {
        learned->rate = learned->ceiling = 0;
        learned->next_ns = 0;
        learned->measurements = 0;
    }
    return learned->rate > 0 ? learned->next_ns : 0;
}

static void grow(struct weir_learned *learned, uint64_t now_ns)
{
    if (now_ns < learned->kept_ns)
        return;
    learned->requests++;
    double cycle = learned->guess ? WEIR_LEARNED_GUESS : WEIR_LEARNED_CYCLE;
    double seconds = learned->guess ? WEIR_LEARNED_GUESS_S : WEIR_LEARNED_CYCLE_S;
    double at = (double)learned->requests / cycle - 1;
    double slow = (double)(now_ns - learned->decreased_ns) / S_NS / seconds - 1;
    at = at > slow ? at : slow;
    learned->rate = clamp(learned->ceiling * (1 + learned->decrease * at * at * at));
}

void weir_learned_send(struct weir_learned *learned, uint64_t now_ns)
{
    if (learned->began_ns == 0)
        learned->began_ns = learned->refused_ns = now_ns;
    if (learned->rate <= 0)
        return;
    uint64_t interval = (uint64_t)(S_NS / learned->rate);
    if (learned->next_ns + 2 * interval > now_ns)
        grow(learned, now_ns);
    learned->next_ns = now_ns + interval;
}

/* Requests a second. */
static double measured(uint64_t admitted, uint64_t since_ns, uint64_t now_ns)
{
    uint64_t period = now_ns - since_ns;

    period = period > LEAST_PERIOD_NS ? period : LEAST_PERIOD_NS;
    return clamp((double)admitted * S_NS / (double)period);
}

static void set_rate(struct weir_learned *learned, double ceiling, double decrease, bool guess,
                     uint64_t now_ns)
{
    learned->kept_ns = 0;
    learned->guess = guess;
    learned->ceiling = clamp(ceiling);
    learned->decrease = decrease;
    learned->rate = clamp(ceiling * (1 - decrease));
    learned->requests = 0;
    learned->next_ns = now_ns + (uint64_t)(S_NS / learned->rate);
}

void weir_learned_admitted(struct weir_learned *learned, uint64_t sent_ns, uint64_t now_ns)
{
    /* One that was in flight with the refused one does not end the storm. */
    if (learned->storm > 0 && sent_ns >= learned->decreased_ns) {
        double rate = measured(learned->admitted, learned->began_ns, now_ns);
        bool long_enough = learned->admitted >= MEASURED_LEAST ||
                           (learned->admitted > 0 && now_ns - learned->began_ns > LONG_NS);
        if (learned->storm >= WEIR_LEARNED_STORM && long_enough && rate < learned->rate * FAR_LOWER)
            set_rate(learned, rate, DECREASE, true, now_ns);
        learned->counted = 0;
        learned->storm = 0;
        learned->admitted = 0;
        learned->began_ns = now_ns;
    }
    learned->admitted++;
    learned->admitted_since++;
}

void weir_learned_refused(struct weir_learned *learned, uint64_t sent_ns, uint64_t now_ns,
                          bool counts)
{
    if (sent_ns < learned->decreased_ns)
        return;
    double lately = measured(learned->admitted_since, learned->refused_ns, now_ns);
    bool many = learned->admitted_since >= MEASURED_LEAST;
    bool first = learned->storm++ == 0, settled = learned->requests >= WEIR_LEARNED_SETTLED;
    if (first) {
        learned->refused_ns = now_ns;
        learned->admitted_since = 0;
    }
    learned->decreased_ns = now_ns;
    if (!counts || learned->counted)
        return;
    learned->counted = 1;
    learned->paced = 0;
    if (learned->rate <= 0) {
        /* Where nothing was admitted, there is no rate to learn. */
        if (learned->admitted > 0)
            set_rate(learned, measured(learned->admitted, learned->began_ns, now_ns), DECREASE,
                     true, now_ns);
    } else if (first && many && lately < learned->rate * FAR_LOWER) {
        bool early = learned->measurements < EARLY;
        learned->paced = 1;
        learned->refused = learned->rate < TWICE * lately ? learned->rate : TWICE * lately;
        learned->measurements += early;
        set_rate(learned, lately, DECREASE, early, now_ns);
    } else {
        learned->paced = 1;
        learned->refused = learned->rate;
        set_rate(learned, learned->rate, settled ? DECREASE : DECREASE_AGAIN, false, now_ns);
    }
}

void weir_learned_keep(struct weir_learned *learned, double rate, uint64_t until_ns,
                       uint64_t now_ns)
{
    set_rate(learned, rate, KEPT, false, now_ns);
    learned->kept_ns = until_ns;
}

void weir_learned_measure(struct weir_learned *learned, uint64_t until_ns, uint64_t now_ns)
{
    set_rate(learned, learned->refused * (1 + MEASURING) / (1 - DECREASE), DECREASE, false, now_ns);
    learned->kept_ns = until_ns;
}
