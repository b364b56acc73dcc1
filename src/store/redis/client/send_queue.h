/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of calls for one server: those in flight, then those to be sent.
 *
 *   places:   first ──▶ in flight ──▶ sent ──▶ to be sent ──▶ last      (numbers that only grow)
 *
 * Replies come in the order of the queue, so the place of a call that its caller has forgotten
 * stays where it is. One that left before it was sent leaves a gap, which is skipped; when the
 * queue is full, the gaps among those to be sent are closed first.
 *
 * Memory: 16 bytes a place, a power of two of them, doubled when needed and never given back.
 */
#ifndef WEIR_STORE_REDIS_CLIENT_SEND_QUEUE_H
#define WEIR_STORE_REDIS_CLIENT_SEND_QUEUE_H

#include "store/redis/client/client.h"

enum redis_place_kind {
    REDIS_PLACE_CALL,
    REDIS_PLACE_FORGOTTEN, /* its reply is dropped */
    REDIS_PLACE_GAP,       /* it has no reply */
    REDIS_PLACE_LOAD,      /* SCRIPT LOAD of `script` */
    REDIS_PLACE_PING,
};

struct redis_place {
    struct redis_call *call;
    uint8_t kind;   /* enum redis_place_kind */
    uint8_t script; /* index */
    bool asking;    /* a call that goes after ASKING, whose reply comes first */
};

struct redis_send_queue {
    struct redis_place *places;
    uint32_t room, first, sent, last;
};

static inline struct redis_place *redis_send_queue_at(const struct redis_send_queue *queue,
                                                      uint32_t turn)
{
    return &queue->places[turn & (queue->room - 1)];
}

static inline bool redis_send_queue_in_flight(const struct redis_send_queue *queue)
{
    return queue->first != queue->sent;
}

/* Adds a place at the end, and sets its call's turn. Errors: WEIR_ERR_MEMORY. */
int redis_send_queue_push(struct redis_send_queue *queue, struct redis_place place)
    __attribute__((warn_unused_result));

/* Takes the first place; there must be one. */
struct redis_place redis_send_queue_pop(struct redis_send_queue *queue);

/* Counts the next place as sent. */
void redis_send_queue_pass(struct redis_send_queue *queue);

/* Takes a call out, or makes its place a forgotten one. Returns whether it was not sent yet. */
bool redis_send_queue_leave(struct redis_send_queue *queue, struct redis_call *call);

void redis_send_queue_free(struct redis_send_queue *queue);

#endif
