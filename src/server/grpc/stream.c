/* SPDX-License-Identifier: Apache-2.0 */
/* Streams: a call from its first field to the end of its request. See grpc.h. */
#include "server/grpc/stream.h"

#include <stdio.h>
#include <string.h>

#include "server/grpc/reply.h"

/* --- Life ------------------------------------------------------------------------------------- */

static char *stream_grow(void *owner, size_t size, size_t *room)
{
    struct weir_grpc_stream *stream = owner;
    struct weir_buffer *block = weir_buffer_take(&stream->connection->worker->buffers, size);
    if (!block)
        return NULL;
    block->next = stream->blocks;
    stream->blocks = block;
    *room = block->size;
    return block->data;
}

static void stream_free_blocks(struct weir_grpc_stream *stream)
{
    while (stream->blocks) {
        struct weir_buffer *block = stream->blocks;
        stream->blocks = block->next;
        weir_buffer_give(&stream->connection->worker->buffers, block);
    }
}

static void stream_begin_arena(struct weir_grpc_stream *stream)
{
    weir_grpc_arena_init(&stream->arena, WEIR_GRPC_ARENA_MAX, stream_grow, stream);
    stream->arena.at = (char *)(stream + 1);
    stream->arena.end = stream->self->data + stream->self->size;
}

void weir_grpc_stream_forget(struct weir_grpc_stream *stream)
{
    if (stream->answered) /* the arena holds the text of its status */
        return;
    stream_free_blocks(stream);
    stream_begin_arena(stream);
}

struct weir_grpc_stream *weir_grpc_stream_open(struct weir_connection *connection, int32_t id)
{
    struct weir_grpc_session *session = weir_grpc_session(connection);
    struct weir_buffer *self = weir_buffer_take(&connection->worker->buffers, WEIR_BUFFER_SIZE_MIN);
    if (!self)
        return NULL;
    struct weir_grpc_stream *stream = (struct weir_grpc_stream *)(void *)self->data;
    memset(stream, 0, sizeof *stream);
    stream->self = self;
    stream->connection = connection;
    stream->id = id;
    stream->begun_ms = uv_now(connection->worker->loop);
    stream_begin_arena(stream);
    stream->next = session->streams;
    if (stream->next)
        stream->next->previous = stream;
    session->streams = stream;
    return stream;
}

static void stream_unlink(struct weir_grpc_session *session, struct weir_grpc_stream *stream)
{
    if (stream->previous)
        stream->previous->next = stream->next;
    else
        session->streams = stream->next;
    if (stream->next)
        stream->next->previous = stream->previous;
    if (!stream->ready)
        return;
    struct weir_grpc_stream **link = &session->ready;
    while (*link != stream)
        link = &(*link)->next_ready;
    *link = stream->next_ready;
    if (!*link)
        session->ready_end = link;
}

/* Opens the connection's window for what it has sent of a message that is done with. */
static void stream_release(struct weir_grpc_stream *stream)
{
    struct weir_connection *connection = stream->connection;
    if (stream->held)
        nghttp2_session_consume_connection(weir_grpc_session(connection)->http2, stream->held);
    stream->held = 0;
    weir_buffer_give(&connection->worker->buffers, stream->body);
    stream->body = NULL;
}

/* Takes back what it waits for: the answer is not needed any more. */
static void stream_drop_call(struct weir_grpc_stream *stream)
{
    if (stream->method && stream->method->drop)
        stream->method->drop(stream);
    stream->call = NULL;
    if (stream->slot)
        weir_connection_drop_slot(stream->connection, stream->slot);
    stream->slot = NULL;
}

void weir_grpc_stream_close(struct weir_grpc_stream *stream)
{
    struct weir_connection *connection = stream->connection;
    struct weir_grpc_session *session = weir_grpc_session(connection);
    struct weir_buffers *buffers = &connection->worker->buffers;
    stream_drop_call(stream);
    stream_release(stream);
    stream_unlink(session, stream);
    stream_free_blocks(stream);
    weir_buffer_give(buffers, stream->streamed);
    weir_buffer_give(buffers, stream->self);
    session->quiet_ms = uv_now(connection->worker->loop);
}

/* --- Head ------------------------------------------------------------------------------------- */

/* Whether the caller may: a listener with a token wants it for all that is not public. */
static bool stream_admitted(const struct weir_grpc_stream *stream)
{
    return stream->method->public || stream->has_token ||
           !weir_listener_settings(stream->connection->listener)->token;
}

void weir_grpc_stream_route(struct weir_grpc_stream *stream)
{
    if (!stream->is_grpc)
        weir_grpc_refuse(stream, "415");
    else if (!stream->is_post)
        weir_grpc_refuse(stream, "405");
    else if (!stream->method)
        weir_grpc_fail(stream, WEIR_GRPC_UNIMPLEMENTED, "unknown service or method");
    else if (!stream_admitted(stream))
        weir_grpc_fail(stream, WEIR_GRPC_UNAUTHENTICATED, "missing or invalid token");
    else if (stream->bad_timeout)
        weir_grpc_fail(stream, WEIR_GRPC_INTERNAL, "malformed grpc-timeout");
}

/* --- Messages --------------------------------------------------------------------------------- */

static void stream_message(struct weir_grpc_stream *stream, struct weir_bytes message)
{
    stream->messages++;
    if (stream->messages > 1 && !stream->method->streams)
        weir_grpc_fail(stream, WEIR_GRPC_UNIMPLEMENTED, "more than one message in a unary call");
    else
        stream->method->read(stream, message);
}

/* Reads one message. Returns the bytes taken, 0 when more are needed, or -1: it was answered. */
static long stream_read(struct weir_grpc_stream *stream, const char *data, size_t size)
{
    struct weir_grpc_prefix prefix;
    char text[96];
    int n = weir_grpc_prefix_read(&prefix, data, size);
    if (n == 0)
        return 0;
    if (n < 0) {
        weir_grpc_fail(stream, WEIR_GRPC_INTERNAL, "a message must begin with 0 or 1");
    } else if (prefix.compressed && stream->encoded) {
        weir_grpc_fail(stream, WEIR_GRPC_UNIMPLEMENTED, "compressed messages are not supported");
    } else if (prefix.compressed) {
        weir_grpc_fail(stream, WEIR_GRPC_INTERNAL,
                       "a compressed message needs the header grpc-encoding");
    } else if (prefix.size > WEIR_GRPC_MESSAGE_MAX) {
        snprintf(text, sizeof text, "message of %u bytes, more than %u", prefix.size,
                 WEIR_GRPC_MESSAGE_MAX);
        weir_grpc_fail(stream, WEIR_GRPC_RESOURCE_EXHAUSTED, text);
    } else if (size - (size_t)n < prefix.size) {
        return 0;
    } else {
        stream_message(stream, (struct weir_bytes){data + n, prefix.size});
        return n + (long)prefix.size;
    }
    return -1;
}

/* Keeps bytes of a message that is not whole. False: no memory. */
static bool stream_keep(struct weir_grpc_stream *stream, const char *data, size_t size)
{
    struct weir_buffers *buffers = &stream->connection->worker->buffers;
    struct weir_buffer *body = stream->body ? weir_buffer_reserve(buffers, stream->body, size)
                                            : weir_buffer_take(buffers, size);
    if (!body)
        return false;
    memcpy(body->data + body->used, data, size);
    body->used += size;
    stream->body = body;
    return true;
}

/* Reads all messages of data[0..size). Returns how many bytes are done with. */
static size_t stream_read_all(struct weir_grpc_stream *stream, const char *data, size_t size)
{
    size_t done = 0;
    while (done < size && !stream->answered) {
        long n = stream_read(stream, data + done, size - done);
        if (n <= 0)
            break;
        done += (size_t)n;
    }
    return stream->answered ? size : done;
}

void weir_grpc_stream_take(struct weir_grpc_stream *stream, const char *data, size_t size)
{
    nghttp2_session *http2 = weir_grpc_session(stream->connection)->http2;
    struct weir_buffer *body = stream->body;
    if (stream->answered) {
        nghttp2_session_consume(http2, stream->id, size);
        return;
    }
    size_t done = body ? 0 : stream_read_all(stream, data, size);
    if (done < size && !stream_keep(stream, data + done, size - done)) {
        weir_grpc_fail(stream, WEIR_GRPC_UNAVAILABLE, "overloaded");
    } else if (body) {
        body = stream->body;
        size_t read = stream_read_all(stream, body->data, body->used);
        memmove(body->data, body->data + read, body->used - read);
        body->used -= read;
    }
    nghttp2_session_consume_stream(http2, stream->id, size);
    stream->held += (uint32_t)size;
    if (!stream->body || !stream->body->used)
        stream_release(stream);
}

void weir_grpc_stream_end(struct weir_grpc_stream *stream)
{
    struct weir_grpc_session *session = weir_grpc_session(stream->connection);
    stream->whole = true;
    if (stream->answered)
        return;
    if (stream->body) {
        weir_grpc_fail(stream, WEIR_GRPC_INTERNAL, "the request ends within a message");
    } else if (!stream->messages && !stream->method->streams) {
        weir_grpc_fail(stream, WEIR_GRPC_UNIMPLEMENTED, "no message in a unary call");
    } else if (stream->method->begin) {
        stream->ready = true;
        *session->ready_end = stream;
        session->ready_end = &stream->next_ready;
    }
}

/* --- Decisions -------------------------------------------------------------------------------- */

static bool stream_is_late(const struct weir_grpc_stream *stream)
{
    return stream->deadline_ms && uv_now(stream->connection->worker->loop) >= stream->deadline_ms;
}

static void stream_fail_late(struct weir_grpc_stream *stream)
{
    stream_drop_call(stream);
    weir_grpc_fail(stream, WEIR_GRPC_DEADLINE_EXCEEDED, "the deadline has passed");
}

void weir_grpc_session_begin_ready(struct weir_connection *connection)
{
    struct weir_grpc_session *session = weir_grpc_session(connection);
    while (session->ready && !weir_connection_pause(connection)) {
        struct weir_grpc_stream *stream = session->ready;
        session->ready = stream->next_ready;
        if (!session->ready)
            session->ready_end = &session->ready;
        stream->ready = false;
        if (stream_is_late(stream))
            stream_fail_late(stream);
        else
            stream->method->begin(stream);
    }
}

static void stream_on_decided(struct weir_slot *slot, struct weir_output *output)
{
    struct weir_grpc_stream *stream = slot->owner;
    stream->slot = NULL; /* the caller that wrote it gives it back */
    if (stream_is_late(stream))
        stream_fail_late(stream);
    else
        stream->method->finish(stream);
}

bool weir_grpc_expect(struct weir_grpc_stream *stream)
{
    stream->slot = weir_connection_slot(stream->connection);
    if (!stream->slot) {
        weir_grpc_fail(stream, WEIR_GRPC_UNAVAILABLE, "overloaded");
        return false;
    }
    stream->slot->owner = stream;
    stream->slot->write = stream_on_decided;
    return true;
}

void weir_grpc_wait(struct weir_grpc_stream *stream, struct weir_decision *decision)
{
    struct weir_worker *worker = stream->connection->worker;
    uint64_t patience_ns = stream->timeout_ns / 4 * 3;
    if (patience_ns && patience_ns < worker->patience_ns)
        decision->deadline_ns = weir_worker_time(worker) + patience_ns;
    weir_slot_wait(stream->slot, decision);
}

struct weir_decision *weir_grpc_take(struct weir_grpc_stream *stream)
{
    struct weir_decision *decision = weir_worker_take(stream->connection->worker);
    if (!decision) /* not after weir_connection_pause */
        weir_grpc_fail(stream, WEIR_GRPC_UNAVAILABLE, "overloaded");
    return decision;
}

void weir_grpc_wait_one(struct weir_grpc_stream *stream, struct weir_decision *decision)
{
    if (!weir_grpc_expect(stream)) {
        weir_worker_give(stream->connection->worker, decision);
        return;
    }
    stream->call = decision;
    weir_grpc_wait(stream, decision);
}

void weir_grpc_stream_check(struct weir_grpc_stream *stream, uint64_t now_ms)
{
    nghttp2_session *http2 = weir_grpc_session(stream->connection)->http2;
    bool slow = !stream->whole && !stream->answered &&
                !(stream->method && stream->method->streams && stream->messages) &&
                now_ms > stream->begun_ms + WEIR_REQUEST_MS;
    bool stuck = stream->answered && now_ms > stream->answered_ms + WEIR_STALL_MS;
    if (!stream->answered && stream_is_late(stream))
        stream_fail_late(stream);
    else if (slow || stuck)
        nghttp2_submit_rst_stream(http2, NGHTTP2_FLAG_NONE, stream->id, NGHTTP2_CANCEL);
}
