/* SPDX-License-Identifier: Apache-2.0 */
/* See reply_reader.h. */
#include "store/redis/client/reply_reader.h"

#include <stdlib.h>
#include <string.h>

#define BYTES_FIRST (64 * 1024)
#define READ_MIN 4096
#define NODES_FIRST 512 /* 32 checks in one reply */
#define NODES_MAX (128 * 1024)

int redis_reply_reader_init(struct redis_reply_reader *reader)
{
    *reader = (struct redis_reply_reader){.room = BYTES_FIRST, .node_room = NODES_FIRST};
    reader->bytes = malloc(reader->room);
    reader->nodes = malloc(reader->node_room * sizeof *reader->nodes);
    if (reader->bytes && reader->nodes)
        return 0;
    redis_reply_reader_free(reader);
    return WEIR_ERR_MEMORY;
}

void redis_reply_reader_free(struct redis_reply_reader *reader)
{
    free(reader->bytes);
    free(reader->nodes);
    reader->bytes = NULL;
    reader->nodes = NULL;
}

bool redis_reply_reader_is_full(const struct redis_reply_reader *reader)
{
    return reader->room >= REDIS_REPLY_MAX;
}

char *redis_reply_reader_room(struct redis_reply_reader *reader, size_t *size)
{
    if (reader->room - reader->end < READ_MIN) {
        char *grown =
            redis_reply_reader_is_full(reader) ? NULL : realloc(reader->bytes, 2 * reader->room);
        if (!grown)
            return NULL;
        reader->bytes = grown;
        reader->room *= 2;
    }
    *size = reader->room - reader->end;
    return reader->bytes + reader->end;
}

void redis_reply_reader_take(struct redis_reply_reader *reader, size_t size)
{
    reader->end += size;
}

/* After a reply of more nodes than there is room for. Its bytes are still there. */
static int nodes_grow(struct redis_reply_reader *reader, uint32_t count)
{
    struct weir_resp_node *grown =
        count > NODES_MAX ? NULL : realloc(reader->nodes, count * sizeof *grown);
    if (!grown)
        return WEIR_ERR_TOO_LARGE;
    reader->nodes = grown;
    reader->node_room = count;
    return 0;
}

/* Moves what is left to the front, and gives the room of a large reply back. */
static void reader_settle(struct redis_reply_reader *reader)
{
    size_t left = reader->end - reader->start;
    if (reader->start > 0 && left > 0)
        memmove(reader->bytes, reader->bytes + reader->start, left);
    reader->start = 0;
    reader->end = left;
    if (reader->room > BYTES_FIRST && left + READ_MIN < BYTES_FIRST) {
        char *shrunk = realloc(reader->bytes, BYTES_FIRST);
        if (shrunk) {
            reader->bytes = shrunk;
            reader->room = BYTES_FIRST;
        }
    }
    if (reader->node_room > NODES_FIRST && reader->reader.nodes == 0) {
        struct weir_resp_node *shrunk = realloc(reader->nodes, NODES_FIRST * sizeof *reader->nodes);
        if (shrunk) {
            reader->nodes = shrunk;
            reader->node_room = NODES_FIRST;
        }
    }
}

int redis_reply_reader_next(struct redis_reply_reader *reader, uint32_t *count)
{
    for (;;) {
        size_t size = reader->end - reader->start;
        long taken = size == 0
                         ? 0
                         : weir_resp_reply_parse(&reader->reader, reader->bytes + reader->start,
                                                 size, reader->nodes, reader->node_room, count);
        if (taken == 0) {
            reader_settle(reader);
            return 0;
        }
        if (taken < 0)
            return (int)taken;
        if (*count <= reader->node_room) {
            reader->start += (size_t)taken;
            return 1;
        }
        int error = nodes_grow(reader, *count); /* and the same reply again */
        if (error != 0)
            return error;
    }
}

struct weir_bytes redis_reply_reader_rest(const struct redis_reply_reader *reader)
{
    return (struct weir_bytes){reader->bytes + reader->start, reader->end - reader->start};
}
