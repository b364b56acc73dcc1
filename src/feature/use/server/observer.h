/* SPDX-License-Identifier: Apache-2.0 */
/* What one worker sees of use: a sketch of keys, one of routes and plans, one of callers, one of
 * limits whose bursts were used up, and a ring of denials.
 *
 *   engine ─ observe ─▶ keys[active]    by limit and key     ─┐ the main thread swaps `active` and
 *                    ├▶ places[active]  by route and plan     │ takes the other
 *                    ├▶ callers[active] by who asked          │
 *                    ├▶ bursts[active]  by limit             ─┘
 *                    └▶ denials         one writer, one reader
 *
 * Sampling. Each worker counts every request of the first 2,048 of a second, with all its limits:
 * a quiet server is exact. Of those after that it takes 1 in 16, from 32,768 on 1 in 64, and from
 * 262,144 on 1 in 256, at random gaps; of each it looks at one limit, drawn at random, and counts
 * it for all that it is drawn from. So at most some 20,000 samples a second cost a worker less than
 * 1 %. A count of f requests of k limits that were sampled 1 in n has a standard deviation of about
 * sqrt(n k f): 7 % of 10,000 requests at 1 in 16 of 3 limits, 0.7 % of a million. This comes on top
 * of the error of the sketch (feature/use/heavy.h).
 *
 * Denials are not sampled, but of each key and limit at most `per_key` a second are kept; what was
 * left out is counted in the `more` of the next one that is kept.
 *
 * Callers are users, organisations and addresses (of IPv6 the /64), as far as the request says them
 * or a limit had to find them out; each is counted by itself, and all requests as one more item.
 *
 * Locks. A word that the worker tries once a sample, and the main thread holds for the swap of two
 * pointers. A sample that finds it held is lost. Workers share nothing.
 *
 * Memory: about 1.9 MiB a worker, whatever the traffic.
 * Threads: weir_observer_see is the worker's; the rest is the main thread's.
 */
#ifndef WEIR_FEATURE_USE_SERVER_OBSERVER_H
#define WEIR_FEATURE_USE_SERVER_OBSERVER_H

#include <stdatomic.h>

#include "feature/use/engine/observe.h"
#include "feature/use/heavy.h"
#include "feature/use/server/denial.h"

/* Requests of a second that are all counted. */
#define WEIR_USE_EXACT 2048

/* Items of a sketch: a key that makes more than 1 in 1,024 of all checks is in it. */
#define WEIR_USE_KEYS 1024
#define WEIR_USE_PLACES 256

/* Denials that wait for the main thread, which comes four times a second and sooner. */
#define WEIR_USE_DENIALS 256

#define WEIR_USE_CALLERS 512

/* Limits whose bursts are counted by name between two takes; more count as one. */
#define WEIR_USE_BURSTS 128

/* Names of what is in `callers`: kinds of values; and all requests. */
#define WEIR_USE_USER "user"
#define WEIR_USE_ORG "org"
#define WEIR_USE_ADDRESS "client.ip"
#define WEIR_USE_ALL "*"

/* Names of what is in `places`. */
#define WEIR_USE_ROUTE "route"
#define WEIR_USE_PLAN "plan"

/* How many are kept of what the main thread says. */
struct weir_observer_settings {
    _Atomic uint32_t per_key;    /* denials of a key that are kept a second; 0: none at all */
    _Atomic uint32_t generation; /* of the rules, as the main thread counts them */
    uint64_t secret[2];          /* callers are hashed with it: they choose their names */
};

struct weir_observer;

/* `settings` are shared by all workers, and borrowed. Errors: WEIR_ERR_MEMORY. */
int weir_observer_open(struct weir_observer **observer,
                       const struct weir_observer_settings *settings, uint64_t seed)
    __attribute__((warn_unused_result));
void weir_observer_close(struct weir_observer *observer);

/* A weir_engine_observe; `context` is the observer. */
uint32_t weir_observer_see(void *context, const struct weir_observed *observed);

/* What is seen, in a sketch each. The first WEIR_SEEN_SHOWN are also shown, by windows of time. */
enum weir_seen {
    WEIR_SEEN_KEYS,
    WEIR_SEEN_PLACES,
    WEIR_SEEN_CALLERS,
    WEIR_SEEN_SHOWN,
    WEIR_SEEN_BURSTS = WEIR_SEEN_SHOWN, /* requests that took the last of a key's limit */
    WEIR_SEEN
};
/* Takes what was seen since the last call; valid until the next one. */
void weir_observer_take(struct weir_observer *observer, const struct weir_heavy *seen[WEIR_SEEN]);

/* Takes the oldest denial. False: there is none. */
bool weir_observer_take_denial(struct weir_observer *observer, struct weir_denial *denial);

struct weir_observer_stats {
    _Atomic uint64_t sampled;      /* requests that were looked at */
    _Atomic uint64_t lost;         /* samples that found the sketch being taken */
    _Atomic uint64_t denials_full; /* denials that found no room */
    _Atomic uint64_t denials_more; /* denials left out by per_key */
};
const struct weir_observer_stats *weir_observer_stats(const struct weir_observer *observer);

#endif
