/* SPDX-License-Identifier: Apache-2.0 */
/* see queue.h */
#include "server/penalties/queue.h"

#include <stdlib.h>
#include <string.h>

int weir_strike_queue_open(struct weir_strike_queue *queue)
{
    memset(queue, 0, sizeof *queue);
    queue->ring = calloc(WEIR_STRIKE_QUEUE_MAX, sizeof *queue->ring);
    if (!queue->ring)
        return WEIR_ERR_MEMORY;
    pthread_mutex_init(&queue->lock, NULL);
    return 0;
}

void weir_strike_queue_close(struct weir_strike_queue *queue)
{
    if (!queue->ring)
        return;
    pthread_mutex_destroy(&queue->lock);
    free(queue->ring);
    queue->ring = NULL;
}

bool weir_strike_queue_put(struct weir_strike_queue *queue, const struct weir_queued_strike *strike,
                           bool *first)
{
    uint32_t most = strike->moves ? WEIR_STRIKE_QUEUE_MAX : WEIR_STRIKE_QUEUE_MAX / 2;
    bool room;

    pthread_mutex_lock(&queue->lock);
    room = queue->count < most;
    *first = queue->count == 0;
    if (room)
        queue->ring[(queue->first + queue->count++) % WEIR_STRIKE_QUEUE_MAX] = *strike;
    pthread_mutex_unlock(&queue->lock);
    return room;
}

bool weir_strike_queue_take(struct weir_strike_queue *queue, struct weir_queued_strike *strike)
{
    bool any;

    pthread_mutex_lock(&queue->lock);
    any = queue->count > 0;
    if (any) {
        *strike = queue->ring[queue->first];
        queue->first = (queue->first + 1) % WEIR_STRIKE_QUEUE_MAX;
        queue->count--;
    }
    pthread_mutex_unlock(&queue->lock);
    return any;
}
