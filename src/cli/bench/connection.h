/* SPDX-License-Identifier: Apache-2.0 */
/* One connection of a load: requests queued and sent, replies read, and when each was due.
 *
 * `out` holds as many copies of the request as may be in flight; a request is made in the next copy
 * by writing its key. Copies are used from the start again once all that was queued is sent: until
 * then the connection takes no more (`blocked`).
 *
 * Threads: one owner, its client. Memory: see client.h.
 */
#ifndef WEIR_CLI_BENCH_CONNECTION_H
#define WEIR_CLI_BENCH_CONNECTION_H

#include "cli/bench/client.h"

struct bench_connection {
    int fd; /* -1: lost, and could not be opened again */
    bool blocked;
    char *out;
    size_t out_at, out_size; /* sent and queued bytes of it */
    uint64_t *due_ns;        /* ring of plan->pipeline: of the requests in flight */
    uint32_t oldest, under_way;
    char *in;
    size_t in_at, in_size, in_room; /* parsed, read, allocated */
    struct bench_reader reader;
};

/* Allocates and connects. On an error the connection still wants to be closed.
 * Errors, with `reason`: WEIR_ERR_MEMORY, WEIR_ERR_IO. */
int bench_connection_open(struct bench_connection *connection, const struct bench_plan *plan,
                          struct weir_reason *reason) __attribute__((warn_unused_result));

/* Forgets what is in flight and reconnects. Errors, with `reason`: WEIR_ERR_IO, after which fd
 * is -1. */
int bench_connection_reopen(struct bench_connection *connection, const struct bench_plan *plan,
                            struct weir_reason *reason) __attribute__((warn_unused_result));

void bench_connection_close(struct bench_connection *connection);

static inline bool bench_connection_has_room(const struct bench_connection *connection,
                                             const struct bench_plan *plan)
{
    return connection->fd >= 0 && !connection->blocked && connection->under_way < plan->pipeline;
}

/* Queues the request of a key. Only where there is room. */
void bench_connection_queue(struct bench_connection *connection, const struct bench_plan *plan,
                            uint64_t key, uint64_t due_ns);

/* Sends what is queued; `blocked` says whether something is left. Errors: WEIR_ERR_IO (errno). */
int bench_connection_flush(struct bench_connection *connection) __attribute__((warn_unused_result));

/* Reads once what the socket has. Returns the bytes, 0 when there are none now, or WEIR_ERR_IO (the
 * connection is at its end), WEIR_ERR_TOO_LARGE (a reply beyond BENCH_REPLY_MAX), WEIR_ERR_MEMORY.
 */
long bench_connection_read(struct bench_connection *connection) __attribute__((warn_unused_result));

/* The next reply of what was read, and when its request was due. Returns 1, 0 when there is none,
 * or an error: of the codec, or WEIR_ERR_SYNTAX for a reply to nothing. */
long bench_connection_next(struct bench_connection *connection, const struct bench_plan *plan,
                           struct bench_reply *reply, uint64_t *due_ns)
    __attribute__((warn_unused_result));

#endif
