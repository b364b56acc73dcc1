/* SPDX-License-Identifier: Apache-2.0 */
/* How many requests to one host may be in flight in this process.
 *
 * It begins with one, and grows by one with each answer, so it doubles with each round trip (slow
 * start, RFC 5681): the first answer tells the limits before many requests have been sent. A
 * refusal (429, 503) or a broken connection brings it back to one.
 * A request whose answer has begun and is handed on while it arrives (a stream) keeps no other one
 * waiting: only the bounds of the caller and of the server hold.
 * With `adaptive`, latency bounds it too: feature/adaptive/gradient2.h.
 *
 * Threads: one owner.
 */
#ifndef WEIR_CLIENT_LANE_H
#define WEIR_CLIENT_LANE_H

#include <stdbool.h>
#include <stdint.h>

#include "feature/adaptive/gradient2.h"

#define WEIR_LANE_MOST 1000

struct weir_host_lane {
    uint32_t most; /* 1..WEIR_LANE_MOST */
    uint32_t ramp;
    uint32_t in_flight; /* without an answer so far */
    uint32_t streams;
    bool adaptive;
    struct weir_gradient2 gradient;
};

void weir_lane_init(struct weir_host_lane *lane, uint32_t most, bool adaptive);

/* `server_most`: what a server allows; 0: the server sets no bound. `probing`: one at a time. */
bool weir_lane_open(const struct weir_host_lane *lane, uint32_t server_most, bool probing);

/* Whether as many are in flight, streams included, as `most`. */
bool weir_lane_full(const struct weir_host_lane *lane);

void weir_lane_send(struct weir_host_lane *lane);

/* The answer of one has begun, and continues as a stream. `good`: as below. */
void weir_lane_answer(struct weir_host_lane *lane, bool good, uint64_t latency_ns, uint64_t now_ns);
void weir_lane_end_stream(struct weir_host_lane *lane);

/* A request has ended. `good`: with an answer that is not 429 or 503. */
void weir_lane_end(struct weir_host_lane *lane, bool good, uint64_t latency_ns, uint64_t now_ns);

#endif
