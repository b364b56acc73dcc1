/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of one host, or of one scope of it: whether a request may be sent now.
 *
 * A request waits for all of: the policies that the server states (pacer.h), the learned rate
 * (learned.h, window.h), and the end of a pause after a refusal. A refusal is 429, 529, a
 * 403 that says that a limit is used up, or 503. Any other answer of 400 and above with Retry-After
 * only pauses, and so does a limit of tokens that is used up. The
 * pause is what the answer states (Retry-After, or the time to the reset of a policy that has
 * nothing left) and a random part of a spread, or an equal-jitter backoff by the number of refusals
 * in a row. The spread is a tenth of what is stated. Each further refusal doubles it, up to 8
 * intervals of the slowest policy (window / limit), and a success halves it: so a client that is
 * alone comes back when the server says, and clients that were refused together do not come back
 * together again and again. Where a server states when one unit is free, such as a bucket's next
 * token, a whole crowd waits for it. So a client that was refused again there, and not admitted in
 * the last window, spreads over three windows. The pace does not hold back the request at the end
 * of a stated pause, but those after it. While refusals go on, weir_host_probing asks for one
 * request at a time.
 *
 * A 429 with a policy that has nothing left is explained: the learned rate does not count it. Where
 * the policy states no window, the rate counts those from the second in a row on, for then what the
 * server tells is wrong; and a wait that was rounded up to one unit explains nothing.
 *
 * The budget of retries counts answers 500, 502, 503, 504 and broken connections as failures. A
 * refusal other than 503 takes nothing from it: the pause and the pace bound what follows, whatever
 * is retried.
 *
 * Memory: about 2.6 KB of plain data that may be in a file shared by processes. What a process that
 * ends in the middle of a change leaves is checked by weir_host_repair. Threads: one owner at a
 * time.
 */
#ifndef WEIR_CLIENT_HOST_H
#define WEIR_CLIENT_HOST_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/client.h>

#include "client/advice.h"
#include "client/backoff.h"
#include "client/pace/learned.h"
#include "client/pace/pacer.h"
#include "client/pace/window.h"
#include "client/retry_budget.h"

#define WEIR_HOST_NAME_MAX 256 /* origin and scope, with the NUL */
/* A policy is dropped when no answer has stated it for so long and its window is over. */
#define WEIR_HOST_FORGET_NS (UINT64_C(600) * 1000000000)

struct weir_host {
    char name[WEIR_HOST_NAME_MAX];
    uint64_t used_ns;
    uint64_t sent;        /* requests */
    uint64_t paused_ns;   /* until then nothing is sent */
    uint64_t own_ns;      /* the state of the caller's own rate (pace/own.h) */
    uint64_t refused_ns;  /* when the pause began */
    uint64_t admitted_ns; /* the last answer that was no refusal */
    uint32_t refusals;    /* in a row */
    uint32_t crowd;       /* refusals less successes: doublings of the spread */
    uint32_t due;         /* the next request goes when the pause ends, whatever the pace */
    uint32_t pace_count;
    uint32_t in_flight_most; /* by a policy of concurrency; 0: none */
    struct weir_retry_budget budget;
    struct weir_learned learned;
    struct weir_window window;
    struct weir_pace paces[WEIR_ADVICE_MAX];
};

/* How a try ended. */
struct weir_host_result {
    int status; /* 0: no answer */
    uint64_t number;
    uint64_t sent_ns, now_ns;
    const struct weir_advice *advice; /* finished; NULL: there is none */
};

/* Forgets what cannot be true at now_ns. */
void weir_host_repair(struct weir_host *host, uint64_t now_ns);

/* From when on a request may be sent: at most now_ns means now. `expected` and
 * `waiting`: as in pacer.h. Outside of a crowd, `expected` does not count for WEIR_HOST_FORGET_NS
 * after a refusal. */
uint64_t weir_host_when(struct weir_host *host, uint64_t expected, uint64_t waiting,
                        uint64_t now_ns);

/* A request is sent. Returns its number. */
uint64_t weir_host_send(struct weir_host *host, uint64_t now_ns);

void weir_host_learn(struct weir_host *host, const struct weir_host_result *result,
                     const struct weir_backoff_spec *backoff, uint64_t *seed);

/* How long an answer says that a refused client is to wait: Retry-After, or until the reset of a
 * policy that has nothing left. 0: it does not say so. */
uint64_t weir_host_stated(const struct weir_host_result *result);

/* Refusals go on: only one request should be in flight, to find out when they end. */
bool weir_host_probing(const struct weir_host *host);

/* What is known of the tightest limit: the one that would make a request wait longest, or else the
 * one with the longest interval. Returns false where nothing is known. */
bool weir_host_known(const struct weir_host *host, uint64_t now_ns,
                     struct weir_client_limit *limit);

#endif
