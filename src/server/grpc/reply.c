/* SPDX-License-Identifier: Apache-2.0 */
/* Answers: from a message, or a status, to what nghttp2 sends. See grpc.h. */
#include "server/grpc/reply.h"

#include <stdio.h>
#include <string.h>

#include "server/daemon/clock.h"
#include "server/grpc/grpc.h"

/* A field whose texts outlive the stream: nghttp2 copies neither. */
#define FIELD(name, value)                                                                         \
    {                                                                                              \
        (uint8_t *)(uintptr_t)(name), (uint8_t *)(uintptr_t)(value), sizeof(name) - 1,             \
            sizeof(value) - 1, NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE        \
    }

static const char *const status_numbers[WEIR_GRPC_STATUSES] = {
    "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16"};

static void stream_count(struct weir_grpc_stream *stream, enum weir_grpc_status status)
{
    struct weir_grpc *grpc = weir_grpc_of(stream);
    size_t method =
        stream->method ? (size_t)(stream->method - grpc->methods) : WEIR_GRPC_METHODS_MAX;
    weir_count(&grpc->calls[method][status], 1);
}

/* What follows the messages: fields[0..n). */
static size_t status_fields(const struct weir_grpc_stream *stream, nghttp2_nv fields[3])
{
    static const nghttp2_nv status = FIELD("grpc-status", "0");
    static const nghttp2_nv text = FIELD("grpc-message", "");
    static const nghttp2_nv encodings = FIELD("grpc-accept-encoding", "identity");
    size_t count = 0;
    fields[count] = status;
    fields[count].value = (uint8_t *)(uintptr_t)status_numbers[stream->status];
    fields[count++].valuelen = stream->status < 10 ? 1 : 2;
    if (stream->status_text) {
        fields[count] = text;
        fields[count].value = (uint8_t *)(uintptr_t)stream->status_text;
        fields[count++].valuelen = stream->status_text_size;
    }
    if (stream->status == WEIR_GRPC_UNIMPLEMENTED && stream->encoded)
        fields[count++] = encodings;
    return count;
}

static ssize_t on_send_data(nghttp2_session *http2, int32_t id, uint8_t *out, size_t room,
                            uint32_t *flags, nghttp2_data_source *source, void *connection)
{
    struct weir_grpc_stream *stream = source->ptr;
    size_t left = stream->out_size - stream->out_sent, n = left < room ? left : room;
    (void)connection;
    if (n && stream->stale_ns && weir_clock_boot_ns() > stream->stale_ns)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; /* the stream is reset */
    if (n)
        memcpy(out, stream->out + stream->out_sent, n);
    stream->out_sent += n;
    if (n < left)
        return (ssize_t)n;
    if (stream->said_all) {
        nghttp2_nv fields[3];
        size_t count = status_fields(stream, fields);
        *flags = NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
        if (nghttp2_submit_trailer(http2, id, fields, count) < 0)
            return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
        return (ssize_t)n;
    }
    if (stream->streamed) {
        stream->streamed->used = 0;
        stream->out_size = stream->out_sent = 0;
    }
    return n ? (ssize_t)n : NGHTTP2_ERR_DEFERRED;
}

/* Begins the response, or continues it. */
static void stream_respond(struct weir_grpc_stream *stream)
{
    static const nghttp2_nv head[] = {FIELD(":status", "200"),
                                      FIELD("content-type", "application/grpc")};
    nghttp2_session *http2 = weir_grpc_session(stream->connection)->http2;
    nghttp2_data_provider provider = {.source = {.ptr = stream}, .read_callback = on_send_data};
    int err;
    if (stream->responded) {
        err = nghttp2_session_resume_data(http2, stream->id);
        err = err == NGHTTP2_ERR_INVALID_ARGUMENT ? 0 : err; /* it has not come to a halt */
    } else {
        err = nghttp2_submit_response(http2, stream->id, head, 2, &provider);
    }
    stream->responded = true;
    if (err < 0)
        nghttp2_submit_rst_stream(http2, NGHTTP2_FLAG_NONE, stream->id, NGHTTP2_INTERNAL_ERROR);
    weir_worker_mark(stream->connection->worker, stream->connection);
}

static void stream_say_last(struct weir_grpc_stream *stream, enum weir_grpc_status status)
{
    stream_count(stream, status);
    stream->status = (uint8_t)status;
    stream->said_all = stream->answered = true;
    stream->answered_ms = uv_now(stream->connection->worker->loop);
}

void weir_grpc_reply(struct weir_grpc_stream *stream, struct weir_bytes message)
{
    if (stream->answered)
        return;
    stream->out = message.data;
    stream->out_size = message.size;
    stream_say_last(stream, WEIR_GRPC_OK);
    stream_respond(stream);
}

void weir_grpc_push(struct weir_grpc_stream *stream, struct weir_bytes message)
{
    struct weir_buffers *buffers = &stream->connection->worker->buffers;
    if (stream->answered)
        return;
    struct weir_buffer *streamed =
        stream->streamed ? weir_buffer_reserve(buffers, stream->streamed, message.size)
                         : weir_buffer_take(buffers, message.size);
    if (!streamed) {
        weir_grpc_fail(stream, WEIR_GRPC_UNAVAILABLE, "overloaded");
        return;
    }
    memcpy(streamed->data + streamed->used, message.data, message.size);
    streamed->used += message.size;
    stream->streamed = streamed;
    stream->out = streamed->data;
    stream->out_size = streamed->used;
    if (stream->out_size - stream->out_sent > WEIR_GRPC_STREAMED_MAX)
        weir_grpc_fail(stream, WEIR_GRPC_RESOURCE_EXHAUSTED,
                       "the client does not read the answers");
    else
        stream_respond(stream);
}

void weir_grpc_finish(struct weir_grpc_stream *stream)
{
    if (stream->answered)
        return;
    stream_say_last(stream, WEIR_GRPC_OK);
    stream_respond(stream);
}

/* An end without messages is one frame: the response's head is its trailers. */
static void stream_respond_trailers_only(struct weir_grpc_stream *stream)
{
    nghttp2_nv fields[5] = {FIELD(":status", "200"), FIELD("content-type", "application/grpc")};
    nghttp2_session *http2 = weir_grpc_session(stream->connection)->http2;
    size_t count = 2 + status_fields(stream, fields + 2);
    stream->responded = true;
    if (nghttp2_submit_response(http2, stream->id, fields, count, NULL) < 0)
        nghttp2_submit_rst_stream(http2, NGHTTP2_FLAG_NONE, stream->id, NGHTTP2_INTERNAL_ERROR);
    weir_worker_mark(stream->connection->worker, stream->connection);
}

void weir_grpc_fail(struct weir_grpc_stream *stream, enum weir_grpc_status status, const char *text)
{
    if (stream->answered)
        return;
    size_t room = text ? 3 * strlen(text) : 0;
    char *encoded = room ? weir_grpc_arena_take(&stream->arena, room) : NULL;
    if (encoded) {
        stream->status_text = encoded;
        stream->status_text_size = weir_grpc_message_encode(text, encoded, room);
    }
    stream_say_last(stream, status);
    if (stream->responded)
        stream_respond(stream);
    else
        stream_respond_trailers_only(stream);
}

void weir_grpc_fail_read(struct weir_grpc_stream *stream, int err)
{
    if (err == WEIR_ERR_TOO_LARGE)
        weir_grpc_fail(stream, WEIR_GRPC_RESOURCE_EXHAUSTED, "the message is too large in memory");
    else
        weir_grpc_fail(stream, WEIR_GRPC_INTERNAL, "the message is malformed");
}

void weir_grpc_refuse(struct weir_grpc_stream *stream, const char *http_status)
{
    nghttp2_nv fields[] = {FIELD(":status", "415")};
    nghttp2_session *http2 = weir_grpc_session(stream->connection)->http2;
    fields[0].value = (uint8_t *)(uintptr_t)http_status;
    stream_say_last(stream, WEIR_GRPC_UNKNOWN);
    stream->responded = true;
    if (nghttp2_submit_response(http2, stream->id, fields, 1, NULL) < 0)
        nghttp2_submit_rst_stream(http2, NGHTTP2_FLAG_NONE, stream->id, NGHTTP2_INTERNAL_ERROR);
    weir_worker_mark(stream->connection->worker, stream->connection);
}
