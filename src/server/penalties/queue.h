/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of strikes from workers to the main thread: a ring of fixed size under a lock, which is
 * held for the copy of one strike.
 *
 * Where it is full a strike is dropped: the caller counts it. Strikes that move nothing fill half
 * of it at most, so that a flood of them leaves room for moves.
 *
 * Memory: 1.4 MiB, touched as the ring is used. Threads: put from any, take on one.
 */
#ifndef WEIR_SERVER_PENALTIES_QUEUE_H
#define WEIR_SERVER_PENALTIES_QUEUE_H

#include <pthread.h>

#include "server/standing/service.h"

/* Some hundred callers that reach a step in one turn of all workers. */
#define WEIR_STRIKE_QUEUE_MAX 1024

/* A strike that moves a ladder, or that makes a step last longer. */
struct weir_queued_strike {
    char penalty[WEIR_KEEPER_PENALTY_MAX + 1];
    char kind[WEIR_STANDING_KIND_MAX + 1];
    struct weir_standing_value value; /* its `kind` is not valid */
    uint64_t hash, value_hash;        /* of penalty and value, of the value alone: known.h */
    uint64_t now_ns;
    bool moves;
};

struct weir_strike_queue {
    pthread_mutex_t lock;
    struct weir_queued_strike *ring;
    uint32_t first, count;
};

/* Errors: WEIR_ERR_MEMORY. */
int weir_strike_queue_open(struct weir_strike_queue *queue) __attribute__((warn_unused_result));
void weir_strike_queue_close(struct weir_strike_queue *queue);

/* False: there is no room. *first: the queue was empty, so the thread that takes has
 * to be woken. */
bool weir_strike_queue_put(struct weir_strike_queue *queue, const struct weir_queued_strike *strike,
                           bool *first);
/* Takes the oldest one. False: there is none. */
bool weir_strike_queue_take(struct weir_strike_queue *queue, struct weir_queued_strike *strike);

#endif
