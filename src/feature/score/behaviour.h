/* SPDX-License-Identifier: Apache-2.0 */
/* How clients behave: the rhythm of each one's requests, whether they all go to one route, and
 * whether each comes on a connection of its own.
 *
 * Three runs are kept for each client. All end with the request at hand:
 *
 *   steady      gaps between its requests that differ from the gap before by less than `within`, or
 *               by less than `spread` percent of it. A gap shorter than `within`, or than 1 ms with
 *               `spread`, ends the run: a browser that loads a page sends a burst, and inside a
 *               burst all gaps are alike. So does a gap of WEIR_GAP_MAX_MS or more.
 *   same_route  requests to one route
 *   fresh       requests that are the first of their connection. One of which that is not known
 *               changes nothing.
 *
 *   requests   |     |     |     |  ||||      |     |
 *   steady     0     1     2     3  0000      1     2      (the first gap of a run counts as 1)
 *
 * Memory: 15 bytes a client, in buckets of one cache line.
 *
 *   bucket (64 bytes)   lock (4) | 4 x client (15)
 *   client              tag 22 bits, route 10 | last 36, gap 26 | steady 8, same_route 8, fresh 8
 *
 * The tag is a part of the client's hash, so two clients of one bucket are taken for one with a
 * probability of 4 in 4 million; two routes with one in 1,024. Times are in 64ths of a millisecond,
 * modulo 2^36 (12.4 days): a client that returns after a multiple of that time, to the second, may
 * count as quick. A full bucket gives the place of the client that has been away for longest.
 * Nothing here decides alone, so such errors are worth their price; no error touches the memory of
 * another client.
 *
 * Threads: any number, over a lock a bucket, which is held for some 20 instructions. Time is an
 * argument; one that goes back by up to a second (threads read clocks at different moments) counts
 * as a gap of 0.
 */
#ifndef WEIR_FEATURE_SCORE_BEHAVIOUR_H
#define WEIR_FEATURE_SCORE_BEHAVIOUR_H

#include <stdbool.h>
#include <stdint.h>

#define WEIR_RUN_MAX 255                    /* where the runs stop to grow */
#define WEIR_GAP_MAX_MS (1U << 20)          /* 17 minutes */
#define WEIR_BEHAVIOUR_CLIENTS_MAX 50000000 /* of a table */

struct weir_behaviour;

/* Where a request is on its connection. */
enum weir_on_connection { WEIR_CONNECTION_UNKNOWN, WEIR_CONNECTION_NEW, WEIR_CONNECTION_USED };

/* What a request is, for its client's runs. */
struct weir_event {
    uint64_t client[2]; /* a hash of who it is from; the table reads 64 bits of it */
    uint64_t now_ns;
    uint32_t within_ms; /* 1 to WEIR_GAP_MAX_MS - 1: how alike gaps have to be */
    uint8_t spread;     /* percent of the gap before, 1 to 100, in place of within_ms; 0: not */
    uint8_t connection; /* enum weir_on_connection */
    uint32_t route;     /* a hash */
    bool routed;        /* it has a route; else its run of routes is 0 */
};

/* Of a client, with the request at hand: 0 to WEIR_RUN_MAX each. */
struct weir_habit {
    uint8_t steady;     /* gaps */
    uint8_t same_route; /* requests; 1 for a new route, 0 without one */
    uint8_t fresh;      /* requests, each on a new connection */
};

/* Opens a table for at least `clients` (1 to WEIR_BEHAVIOUR_CLIENTS_MAX), with one reference. It
 * takes 16 to 32 bytes of address space for each; pages that no client uses stay untouched.
 * Errors: WEIR_ERR_RANGE, WEIR_ERR_MEMORY. */
int weir_behaviour_open(struct weir_behaviour **behaviour, uint64_t clients)
    __attribute__((warn_unused_result));

/* References, counted with atomics. NULL is no table. */
struct weir_behaviour *weir_behaviour_ref(struct weir_behaviour *behaviour);
void weir_behaviour_unref(struct weir_behaviour *behaviour);

/* Asks the memory for what the functions below read of the client. */
void weir_behaviour_prefetch(const struct weir_behaviour *behaviour, const uint64_t client[2]);

/* Finds the habit of the client with this request, and keeps it. */
void weir_behaviour_add(struct weir_behaviour *behaviour, const struct weir_event *event,
                        struct weir_habit *habit);

/* The same, but the request is not kept: what it would be. */
void weir_behaviour_look(struct weir_behaviour *behaviour, const struct weir_event *event,
                         struct weir_habit *habit);

/* The habit of a client as its last request left it; all 0 for one that is not known. */
void weir_behaviour_recall(struct weir_behaviour *behaviour, const uint64_t client[2],
                           struct weir_habit *habit);

/* How many clients there is room for, and how many gave their place to another one. */
uint64_t weir_behaviour_room(const struct weir_behaviour *behaviour);
uint64_t weir_behaviour_evicted(const struct weir_behaviour *behaviour);

#endif
