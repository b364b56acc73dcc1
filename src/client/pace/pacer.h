/* SPDX-License-Identifier: Apache-2.0 */
/* The pace for one policy of a server: what remains is spread over the time that is left.
 *
 * A policy says at most: limit, window, remaining, time to the reset. With r left and between `lo`
 * and `hi` until the reset (servers round to seconds), the interval between two requests is
 *
 *     clamp(window / limit * 1.02, lo / (r + 1), hi / (r + 1))
 *
 * the policy's own pace with a margin of 2 %, unless it would leave units unused or use them up
 * before the reset. Where the window is not known, the middle of the two bounds, but never less
 * than longest / limit * 1.02: the window is at least as long as the longest wait for a reset that
 * was stated. Else a reset that the client waits for to the moment would be followed by a burst.
 * With nothing left, the next request waits for `hi`; but one that keeps to the policy's own pace
 * waits only for `lo`, since that pace is right for any algorithm, and many servers round a wait of
 * milliseconds up to a second. The length of an unstated window is inferred from when the count
 * begins again.
 *
 * Answers of one window narrow lo and hi. But where a server's "reset" moves with each request (a
 * bucket's time to the next unit, or until it is full), a narrowed hi would be too early, so only
 * the newest answer may raise the pace above the policy's own, only by a third or more, and not
 * once the reset was seen to move.
 *
 * Others that use the same limit are noticed: where the count falls faster than this client sends,
 * its `share` of what remains is the part of the fall that is its own. Where the count rises while
 * more than a quarter of the limit is left, the share grows by an eighth: in a sliding window the
 * count hardly falls, so a share that was measured too low would stay.
 *
 * Times are those of sending: an answer to a request that was sent at S and says "t" makes the
 * reset S + t. So a constant latency cancels out; a quarter of it is added, against its changes.
 * What was sent after that request is subtracted from what the answer says remains.
 *
 * Where others use far more than this client, and the window is stated, crowd.h paces instead.
 *
 * A late timer may be made up for by at most WEIR_PACE_SLACK_NS and 5 % of the window.
 *
 * Memory: 256 bytes, plain data that may be in a shared file; weir_pace_valid says whether it can
 * be used. Threads: one owner at a time. Time is an argument, in nanoseconds.
 */
#ifndef WEIR_CLIENT_PACER_H
#define WEIR_CLIENT_PACER_H

#include <stdbool.h>
#include <stdint.h>

#include "client/advice.h"
#include "client/pace/crowd.h"

#define WEIR_PACE_SLACK_NS UINT64_C(50000000)
#define WEIR_PACE_MARGIN_NS UINT64_C(50000000)
#define WEIR_PACE_LEFT_UNKNOWN INT64_MAX
#define WEIR_PACE_SHARE_LEAST 10 /* thousandths */

struct weir_pace {
    char name[WEIR_ADVICE_NAME_MAX];
    uint64_t limit, window_ns;         /* 0: not known */
    uint64_t stated;                   /* remaining, by the newest answer; UNKNOWN */
    int64_t left;                      /* now: less what was sent since */
    uint64_t reset_lo_ns, reset_hi_ns; /* 0: not known */
    uint64_t newest_hi_ns;             /* by the newest answer alone */
    uint64_t margin_ns;                /* behind reset_hi_ns */
    uint64_t longest_ns;               /* of the times to a reset that were stated */
    uint64_t next_ns;                  /* the pace allows a request from then on */
    uint64_t number;                   /* of the request that the newest answer was for */
    uint64_t seen_ns;                  /* when an answer last stated this policy */
    uint32_t share_milli;              /* of what remains: 10..1000; 0: 1000 */
    uint32_t own, fall;                /* since the share was last measured */
    uint32_t inferred;                 /* the window is */
    uint32_t moving;                   /* the reset moves with the requests */
    struct weir_crowd crowd;           /* of clients apart: its pace comes before this one */
};

/* Whether fields read from a file can be used at `now_ns`. */
bool weir_pace_valid(const struct weir_pace *pace, uint64_t now_ns);

/* Begins a policy that an answer states for the first time. */
void weir_pace_begin(struct weir_pace *pace, const struct weir_advice_policy *stated);

/* Takes what an answer says. The request was the `number`th that was sent, at sent_ns; `sent` is
 * how many have been sent until now. */
void weir_pace_learn(struct weir_pace *pace, const struct weir_advice_policy *stated,
                     uint64_t number, uint64_t sent, uint64_t sent_ns, uint64_t now_ns,
                     uint64_t *seed);

/* From when on this policy allows a request; at most now_ns: now. `expected` is how many requests
 * are still to come: where all of them have room, there is no pace. UINT64_MAX: not known.
 * `waiting`: how many wait now; UINT64_MAX: not known. */
uint64_t weir_pace_when(struct weir_pace *pace, uint64_t sent, uint64_t expected, uint64_t waiting,
                        uint64_t now_ns);

/* A request was refused: its answer was learned before. */
void weir_pace_refused(struct weir_pace *pace);

/* A request is sent. */
void weir_pace_send(struct weir_pace *pace, uint64_t now_ns);

/* From one request to the next; 0: no pace is needed. */
uint64_t weir_pace_interval(const struct weir_pace *pace, uint64_t now_ns);

#endif
