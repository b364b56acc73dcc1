/* See reply_reader.h. */
#include "store/redis/client/reply_reader.h"

#include <stdlib.h>
#include <string.h>

#define BYTES_FIRST (64 * 1024)
#define READ_MIN 4096
#define NODES_FIRST 512 /* 32 checks in one reply */
#define NODES_MAX (128 * 1024)

int redis_inbox_init(struct redis_inbox *inbox)
{
    *inbox = (struct redis_inbox){.room = BYTES_FIRST, .node_room = NODES_FIRST};
    inbox->bytes = malloc(inbox->room);
    inbox->nodes = malloc(inbox->node_room * sizeof *inbox->nodes);
    if (inbox->bytes != NULL && inbox->nodes != NULL) {
        return 0;
    }
    redis_inbox_free(inbox);
    return WEIR_ERR_MEMORY;
}

void redis_inbox_free(struct redis_inbox *inbox)
{
    free(inbox->bytes);
    free(inbox->nodes);
    inbox->bytes = NULL;
    inbox->nodes = NULL;
}

bool redis_inbox_is_full(const struct redis_inbox *inbox)
{
    return inbox->room >= REDIS_REPLY_MAX;
}

char *redis_inbox_room(struct redis_inbox *inbox, size_t *size)
{
    if (inbox->room - inbox->end < READ_MIN) {
        char *grown = redis_inbox_is_full(inbox) ? NULL : realloc(inbox->bytes, 2 * inbox->room);
        if (grown == NULL) {
            return NULL;
        }
        inbox->bytes = grown;
        inbox->room *= 2;
    }
    *size = inbox->room - inbox->end;
    return inbox->bytes + inbox->end;
}

void redis_inbox_take(struct redis_inbox *inbox, size_t size)
{
    inbox->end += size;
}

/* After a reply of more nodes than there is room for. Its bytes are still there. */
static int nodes_grow(struct redis_inbox *inbox, uint32_t count)
{
    struct weir_resp_node *grown =
        count > NODES_MAX ? NULL : realloc(inbox->nodes, count * sizeof *grown);
    if (grown == NULL) {
        return WEIR_ERR_TOO_LARGE;
    }
    inbox->nodes = grown;
    inbox->node_room = count;
    return 0;
}

/* Moves what is left to the front, and gives the room of a large reply back. */
static void inbox_settle(struct redis_inbox *inbox)
{
    size_t left = inbox->end - inbox->start;
    if (inbox->start > 0 && left > 0) {
        memmove(inbox->bytes, inbox->bytes + inbox->start, left);
    }
    inbox->start = 0;
    inbox->end = left;
    if (inbox->room > BYTES_FIRST && left + READ_MIN < BYTES_FIRST) {
        char *shrunk = realloc(inbox->bytes, BYTES_FIRST);
        if (shrunk != NULL) {
            inbox->bytes = shrunk;
            inbox->room = BYTES_FIRST;
        }
    }
    if (inbox->node_room > NODES_FIRST && inbox->reader.nodes == 0) {
        struct weir_resp_node *shrunk = realloc(inbox->nodes, NODES_FIRST * sizeof *inbox->nodes);
        if (shrunk != NULL) {
            inbox->nodes = shrunk;
            inbox->node_room = NODES_FIRST;
        }
    }
}

int redis_inbox_next(struct redis_inbox *inbox, uint32_t *count)
{
    for (;;) {
        size_t size = inbox->end - inbox->start;
        long taken = size == 0 ? 0
                               : weir_resp_reply_parse(&inbox->reader, inbox->bytes + inbox->start,
                                                       size, inbox->nodes, inbox->node_room, count);
        if (taken == 0) {
            inbox_settle(inbox);
            return 0;
        }
        if (taken < 0) {
            return (int)taken;
        }
        if (*count <= inbox->node_room) {
            inbox->start += (size_t)taken;
            return 1;
        }
        int error = nodes_grow(inbox, *count); /* and the same reply again */
        if (error != 0) {
            return error;
        }
    }
}

struct weir_bytes redis_inbox_rest(const struct redis_inbox *inbox)
{
    return (struct weir_bytes){inbox->bytes + inbox->start, inbox->end - inbox->start};
}
