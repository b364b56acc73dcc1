/* SPDX-License-Identifier: Apache-2.0 */
/* See send_queue.h. */
#include "store/redis/client/send_queue.h"

#include <stdlib.h>

#define ROOM_FIRST 256

/* Closes the gaps among those to be sent. */
static void line_close_gaps(struct redis_send_queue *line)
{
    uint32_t to = line->sent;
    for (uint32_t from = line->sent; from != line->last; from++) {
        struct redis_place place = *redis_send_queue_at(line, from);
        if (place.kind == REDIS_PLACE_GAP)
            continue;
        if (place.call != NULL)
            place.call->turn = to;
        *redis_send_queue_at(line, to++) = place;
    }
    line->last = to;
}

static int line_grow(struct redis_send_queue *line)
{
    uint32_t room = line->room == 0 ? ROOM_FIRST : 2 * line->room;
    struct redis_place *places = room == 0 ? NULL : malloc(room * sizeof *places);
    if (places == NULL)
        return WEIR_ERR_MEMORY;
    for (uint32_t turn = line->first; turn != line->last; turn++)
        places[turn & (room - 1)] = *redis_send_queue_at(line, turn);
    free(line->places);
    line->places = places;
    line->room = room;
    return 0;
}

int redis_send_queue_push(struct redis_send_queue *line, struct redis_place place)
{
    if (line->last - line->first == line->room) {
        line_close_gaps(line);
        /* A quarter at least, or closing gaps would be all that is done. */
        if (line->last - line->first > line->room - line->room / 4 || line->room == 0) {
            int error = line_grow(line);
            if (error != 0)
                return error;
        }
    }
    if (place.call != NULL)
        place.call->turn = line->last;
    *redis_send_queue_at(line, line->last++) = place;
    return 0;
}

static void line_skip_gaps(struct redis_send_queue *line)
{
    while (line->first != line->sent &&
           redis_send_queue_at(line, line->first)->kind == REDIS_PLACE_GAP)
        line->first++;
}

struct redis_place redis_send_queue_pop(struct redis_send_queue *line)
{
    if (!redis_send_queue_in_flight(line))
        line->sent++; /* it was not sent */
    struct redis_place place = *redis_send_queue_at(line, line->first++);
    line_skip_gaps(line);
    return place;
}

void redis_send_queue_pass(struct redis_send_queue *line)
{
    line->sent++;
    line_skip_gaps(line);
}

bool redis_send_queue_leave(struct redis_send_queue *line, struct redis_call *call)
{
    struct redis_place *place = redis_send_queue_at(line, call->turn);
    bool waits = call->turn - line->sent < line->last - line->sent;
    place->call = NULL;
    place->kind = waits ? REDIS_PLACE_GAP : REDIS_PLACE_FORGOTTEN;
    return waits;
}

void redis_send_queue_free(struct redis_send_queue *line)
{
    free(line->places);
    *line = (struct redis_send_queue){0};
}
