/* SPDX-License-Identifier: Apache-2.0 */
/* see connection.h */
#include "cli/bench/connection.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define IN_ROOM ((size_t)16 << 10) /* 500 replies of CL.THROTTLE */

static int connect_now(struct bench_connection *connection, const struct bench_plan *plan,
                       struct weir_reason *reason)
{
    int fd = bench_target_connect(&plan->target, plan->password, plan->resp3, reason);
    connection->fd = fd < 0 ? -1 : fd;
    return fd < 0 ? fd : 0;
}

int bench_connection_open(struct bench_connection *connection, const struct bench_plan *plan,
                          struct weir_reason *reason)
{
    const struct bench_request *request = &plan->request;
    *connection = (struct bench_connection){.fd = -1, .in_room = IN_ROOM};
    connection->reader.protocol = plan->target.protocol;
    connection->out = calloc(plan->pipeline, request->size);
    connection->due_ns = calloc(plan->pipeline, sizeof *connection->due_ns);
    connection->in = malloc(IN_ROOM);
    if (!connection->out || !connection->due_ns || !connection->in) {
        snprintf(reason->text, sizeof reason->text, "%s", weir_error_text(WEIR_ERR_MEMORY));
        return WEIR_ERR_MEMORY;
    }
    for (uint32_t i = 0; i < plan->pipeline; i++)
        memcpy(connection->out + i * request->size, request->text, request->size);
    return connect_now(connection, plan, reason);
}

int bench_connection_reopen(struct bench_connection *connection, const struct bench_plan *plan,
                            struct weir_reason *reason)
{
    close(connection->fd);
    connection->blocked = false;
    connection->out_at = connection->out_size = 0;
    connection->oldest = connection->under_way = 0;
    connection->in_at = connection->in_size = 0;
    connection->reader = (struct bench_reader){.protocol = plan->target.protocol};
    return connect_now(connection, plan, reason);
}

void bench_connection_close(struct bench_connection *connection)
{
    if (connection->fd >= 0)
        close(connection->fd);
    free(connection->in);
    free(connection->due_ns);
    free(connection->out);
}

void bench_connection_queue(struct bench_connection *connection, const struct bench_plan *plan,
                            uint64_t key, uint64_t due_ns)
{
    uint32_t place = connection->oldest + connection->under_way;
    connection->due_ns[place < plan->pipeline ? place : place - plan->pipeline] = due_ns;
    connection->under_way++;
    bench_request_patch(&plan->request, connection->out + connection->out_size, key);
    connection->out_size += plan->request.size;
}

int bench_connection_flush(struct bench_connection *connection)
{
    while (connection->out_at < connection->out_size) {
        ssize_t sent = send(connection->fd, connection->out + connection->out_at,
                            connection->out_size - connection->out_at, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0) {
            connection->blocked = errno == EAGAIN;
            return connection->blocked ? 0 : WEIR_ERR_IO;
        }
        connection->out_at += (size_t)sent;
    }
    connection->blocked = false;
    connection->out_at = connection->out_size = 0;
    return 0;
}

/* Puts the beginning of an unfinished reply at the front, in a larger buffer if it needs one. */
static int make_room(struct bench_connection *connection)
{
    size_t left = connection->in_size - connection->in_at;
    if (connection->in_at > 0) {
        memmove(connection->in, connection->in + connection->in_at, left);
        connection->in_at = 0;
        connection->in_size = left;
    }
    if (left < connection->in_room)
        return 0;
    if (left >= BENCH_REPLY_MAX)
        return WEIR_ERR_TOO_LARGE;
    char *larger = realloc(connection->in, connection->in_room * 2);
    if (!larger)
        return WEIR_ERR_MEMORY;
    connection->in = larger;
    connection->in_room *= 2;
    return 0;
}

long bench_connection_read(struct bench_connection *connection)
{
    int error = make_room(connection);
    if (error < 0)
        return error;
    ssize_t got = recv(connection->fd, connection->in + connection->in_size,
                       connection->in_room - connection->in_size, 0);
    if (got > 0) {
        connection->in_size += (size_t)got;
        return got;
    }
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    return WEIR_ERR_IO;
}

long bench_connection_next(struct bench_connection *connection, const struct bench_plan *plan,
                           struct bench_reply *reply, uint64_t *due_ns)
{
    size_t left = connection->in_size - connection->in_at;
    if (left == 0)
        return 0;
    if (connection->under_way == 0)
        return WEIR_ERR_SYNTAX;
    long taken = bench_reply_read(&connection->reader, &plan->denial,
                                  connection->in + connection->in_at, left, reply);
    if (taken <= 0)
        return taken;
    connection->in_at += (size_t)taken;
    *due_ns = connection->due_ns[connection->oldest];
    connection->oldest = connection->oldest + 1 < plan->pipeline ? connection->oldest + 1 : 0;
    connection->under_way--;
    return 1;
}
