/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of strikes from workers to the main thread: a ring of fixed size under a lock, which is
 * held for the copy of one strike. A strike takes what its texts need: some 200 bytes with an
 * address, 1.6 KiB at most.
 *
 *   | size | numbers, network, id | penalty NUL kind NUL value NUL key NUL | size | …
 *
 * Where it is full a strike is not taken: the caller counts it. Strikes that move nothing fill half
 * of it at most, so that a flood of them leaves room for moves.
 *
 * Memory: 4 MiB, touched as the ring is used. Threads: put from any, take on one.
 */
#ifndef WEIR_FEATURE_PENALTIES_SERVER_QUEUE_H
#define WEIR_FEATURE_PENALTIES_SERVER_QUEUE_H

#include <pthread.h>

#include "feature/standing/server/service.h"
#include "rules/match/checks.h"

/* Some 20,000 addresses that reach a step before the main thread looks. */
#define WEIR_STRIKE_QUEUE_BYTES ((size_t)4 << 20)

/* A strike that moves a ladder, or that makes a step last longer. */
struct weir_queued_strike {
    char penalty[WEIR_KEEPER_PENALTY_MAX + 1];
    char kind[WEIR_STANDING_KIND_MAX + 1];
    struct weir_standing_value value; /* its `kind` is not valid */
    uint64_t hash, value_hash;        /* of penalty and value, of the value alone: known.h */
    uint64_t now_ns;
    bool moves;
    uint64_t count_hash[2], count_tag; /* of the count of its strikes: struct weir_strike_count */
    char count_key[WEIR_KEY_TEXT_MAX + 1];
};

/* One as bytes, without the room that its texts leave. */
struct weir_packed_strike;
/* Allocated. NULL: no memory. */
struct weir_packed_strike *weir_queued_strike_pack(const struct weir_queued_strike *strike)
    __attribute__((warn_unused_result));
void weir_queued_strike_unpack(const struct weir_packed_strike *packed,
                               struct weir_queued_strike *strike);

struct weir_strike_queue {
    pthread_mutex_t lock;
    char *ring;
    size_t first, used; /* bytes */
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
