/* SPDX-License-Identifier: Apache-2.0 */
/* See send_queue.h. */
#include "store/redis/client/send_queue.h"

#include <stdlib.h>

#define ROOM_FIRST 256

/* Closes the gaps among those to be sent. */
static void queue_close_gaps(struct redis_send_queue *queue)
{
    uint32_t to = queue->sent;
    for (uint32_t from = queue->sent; from != queue->last; from++) {
        struct redis_place place = *redis_send_queue_at(queue, from);
        if (place.kind == REDIS_PLACE_GAP)
            continue;
        if (place.call)
            place.call->turn = to;
        *redis_send_queue_at(queue, to++) = place;
    }
    queue->last = to;
}

static int queue_grow(struct redis_send_queue *queue)
{
    uint32_t room = queue->room == 0 ? ROOM_FIRST : 2 * queue->room;
    struct redis_place *places = room == 0 ? NULL : malloc(room * sizeof *places);
    if (!places)
        return WEIR_ERR_MEMORY;
    for (uint32_t turn = queue->first; turn != queue->last; turn++)
        places[turn & (room - 1)] = *redis_send_queue_at(queue, turn);
    free(queue->places);
    queue->places = places;
    queue->room = room;
    return 0;
}

int redis_send_queue_push(struct redis_send_queue *queue, struct redis_place place)
{
    if (queue->last - queue->first == queue->room) {
        queue_close_gaps(queue);
        /* A quarter at least, or closing gaps would be all that is done. */
        if (queue->last - queue->first > queue->room - queue->room / 4 || queue->room == 0) {
            int error = queue_grow(queue);
            if (error != 0)
                return error;
        }
    }
    if (place.call)
        place.call->turn = queue->last;
    *redis_send_queue_at(queue, queue->last++) = place;
    return 0;
}

static void queue_skip_gaps(struct redis_send_queue *queue)
{
    while (queue->first != queue->sent &&
           redis_send_queue_at(queue, queue->first)->kind == REDIS_PLACE_GAP)
        queue->first++;
}

struct redis_place redis_send_queue_pop(struct redis_send_queue *queue)
{
    if (!redis_send_queue_in_flight(queue))
        queue->sent++; /* it was not sent */
    struct redis_place place = *redis_send_queue_at(queue, queue->first++);
    queue_skip_gaps(queue);
    return place;
}

void redis_send_queue_pass(struct redis_send_queue *queue)
{
    queue->sent++;
    queue_skip_gaps(queue);
}

bool redis_send_queue_leave(struct redis_send_queue *queue, struct redis_call *call)
{
    struct redis_place *place = redis_send_queue_at(queue, call->turn);
    bool waits = call->turn - queue->sent < queue->last - queue->sent;
    place->call = NULL;
    place->kind = waits ? REDIS_PLACE_GAP : REDIS_PLACE_FORGOTTEN;
    return waits;
}

void redis_send_queue_free(struct redis_send_queue *queue)
{
    free(queue->places);
    *queue = (struct redis_send_queue){0};
}
