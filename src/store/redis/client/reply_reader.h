/* SPDX-License-Identifier: Apache-2.0 */
/* Replies out of a stream of bytes: one contiguous buffer, and the nodes of one reply.
 *
 *   …_room ──▶ bytes are read there ──▶ …_take ──▶ …_next, until it returns 0
 *
 * Memory: 64 KB and 512 nodes (16 KB), which is what they go back to after a large reply; the
 * buffer grows to REDIS_REPLY_MAX, the nodes to 4 MB (16,384 ranges of slots).
 */
#ifndef WEIR_STORE_REDIS_CLIENT_REPLY_READER_H
#define WEIR_STORE_REDIS_CLIENT_REPLY_READER_H

#include "store/redis/client/client.h"

struct redis_reply_reader {
    char *bytes;
    size_t start, end, room; /* bytes[start..end) are not dealt with */
    struct weir_resp_reader reader;
    struct weir_resp_node *nodes;
    uint32_t node_room;
};

/* Errors: WEIR_ERR_MEMORY. */
int redis_reply_reader_init(struct redis_reply_reader *reader) __attribute__((warn_unused_result));
void redis_reply_reader_free(struct redis_reply_reader *reader);

/* Where the next bytes may be put, and how many (4 KB at least). NULL: a reply is larger than
 * REDIS_REPLY_MAX, or there is no memory for it (redis_reply_reader_is_full tells which). */
char *redis_reply_reader_room(struct redis_reply_reader *reader, size_t *size);
bool redis_reply_reader_is_full(const struct redis_reply_reader *reader);
void redis_reply_reader_take(struct redis_reply_reader *reader, size_t size);

/* The next reply: reader->nodes[0..*count), valid until the next call. Returns 1, or 0 when more
 * bytes are needed. Errors: WEIR_ERR_SYNTAX, WEIR_ERR_TOO_LARGE (a string, a container, nodes);
 * redis_reply_reader_rest is then where it went wrong. */
int redis_reply_reader_next(struct redis_reply_reader *reader, uint32_t *count)
    __attribute__((warn_unused_result));
struct weir_bytes redis_reply_reader_rest(const struct redis_reply_reader *reader);

#endif
