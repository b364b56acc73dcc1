/* SPDX-License-Identifier: Apache-2.0 */
/* What nghttp2 tells of a connection, and what it may cost. See grpc.h. */
#include "server/grpc/session.h"

#include <string.h>
#include <strings.h>

#include "core/bytes.h"
#include "server/grpc/frames.h"
#include "server/grpc/stream.h"
#include "server/net/guesses.h"
#include "server/net/secret.h"

/* --- What a connection may cost --------------------------------------------------------------- */

void weir_grpc_session_end(struct weir_connection *connection, uint32_t error)
{
    struct weir_grpc_session *session = weir_grpc_session(connection);
    if (session->ended)
        return;
    weir_count(&connection->worker->counters.protocol_errors, 1);
    session->ended = true;
    session->leaving = WEIR_GRPC_LEFT;
    session->leave_ms = uv_now(connection->worker->loop);
    nghttp2_session_terminate_session(session->http2, error);
}

void weir_grpc_session_glitch(struct weir_connection *connection, uint32_t cost)
{
    struct weir_grpc_session *session = weir_grpc_session(connection);
    uint64_t now_ms = uv_now(connection->worker->loop);
    uint64_t back = (now_ms - session->glitched_ms) * WEIR_GRPC_GLITCHES_PER_SECOND / 1000;
    if (back) {
        session->glitches -= back < session->glitches ? (uint32_t)back : session->glitches;
        session->glitched_ms = now_ms;
    }
    session->glitches += cost;
    if (session->glitches > WEIR_GRPC_GLITCHES_MAX)
        weir_grpc_session_end(connection, NGHTTP2_ENHANCE_YOUR_CALM);
}

static void session_credit(struct weir_grpc_session *session)
{
    uint32_t credit = WEIR_GRPC_GLITCHES_CREDIT;
    session->glitches -= session->glitches < credit ? session->glitches : credit;
}

/* --- Heads ------------------------------------------------------------------------------------ */

static int on_begin_headers(nghttp2_session *http2, const nghttp2_frame *frame, void *context)
{
    if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0;
    struct weir_grpc_stream *stream = weir_grpc_stream_open(context, frame->hd.stream_id);
    if (!stream)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    nghttp2_session_set_stream_user_data(http2, frame->hd.stream_id, stream);
    return 0;
}

static const struct weir_grpc_method *method_find(const struct weir_grpc *grpc,
                                                  struct weir_bytes path)
{
    for (uint32_t i = 0; i < grpc->method_count; i++) {
        struct weir_bytes known = grpc->methods[i].path;
        if (known.size == path.size && !memcmp(known.data, path.data, path.size))
            return &grpc->methods[i];
    }
    return NULL;
}

static void take_timeout(struct weir_grpc_stream *stream, struct weir_bytes value)
{
    stream->bad_timeout = weir_grpc_timeout_parse(&stream->timeout_ns, value) < 0;
    uint64_t timeout_ms = stream->timeout_ns / 1000000 + (stream->timeout_ns % 1000000 != 0);
    stream->deadline_ms = stream->begun_ms + timeout_ms;
}

static void take_authorization(struct weir_grpc_stream *stream, struct weir_bytes value)
{
    const char *token = weir_listener_settings(stream->connection->listener)->token;
    if (!token || value.size < 7 || strncasecmp(value.data, "Bearer ", 7))
        return;
    stream->has_token =
        weir_secret_equal((struct weir_bytes){value.data + 7, value.size - 7}, token);
    if (stream->has_token)
        stream->connection->guesses = 0;
    else if (weir_guess_of(stream->connection, false).last)
        weir_grpc_session_glitch(stream->connection, WEIR_GRPC_GLITCHES_MAX + 1);
}

static void take_field(struct weir_grpc_stream *stream, struct weir_bytes name,
                       struct weir_bytes value)
{
    if (weir_bytes_are(name, ":path"))
        stream->method = method_find(weir_grpc_of(stream), value);
    else if (weir_bytes_are(name, ":method"))
        stream->is_post = weir_bytes_are(value, "POST");
    else if (weir_bytes_are(name, "content-type"))
        stream->is_grpc = weir_grpc_content_type(value);
    else if (weir_bytes_are(name, "grpc-timeout"))
        take_timeout(stream, value);
    else if (weir_bytes_are(name, "grpc-encoding"))
        stream->encoded = !weir_bytes_are(value, "identity");
    else if (weir_bytes_are(name, "authorization"))
        take_authorization(stream, value);
}

static int on_header(nghttp2_session *http2, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_size, const uint8_t *value, size_t value_size, uint8_t flags,
                     void *context)
{
    struct weir_grpc_stream *stream =
        nghttp2_session_get_stream_user_data(http2, frame->hd.stream_id);
    (void)flags;
    if (!stream)
        return 0;
    /* As RFC 9113 6.5.2 counts. A block of references to the compressor's table may stand for 4,000
     * times its bytes. */
    stream->header_bytes += (uint32_t)(name_size + value_size + 32);
    if (stream->header_bytes > WEIR_GRPC_HEADERS_MAX) {
        weir_grpc_session_glitch(context, 10);
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; /* the stream is reset */
    }
    if (frame->headers.cat == NGHTTP2_HCAT_REQUEST)
        take_field(stream, (struct weir_bytes){(const char *)name, name_size},
                   (struct weir_bytes){(const char *)value, value_size});
    return 0;
}

/* --- Frames ----------------------------------------------------------------------------------- */

static int on_frame_recv(nghttp2_session *http2, const nghttp2_frame *frame, void *context)
{
    bool end = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;
    if (frame->hd.type == NGHTTP2_SETTINGS)
        weir_grpc_session(context)->greeted = true;
    if (frame->hd.type == NGHTTP2_PING && frame->hd.flags & NGHTTP2_FLAG_ACK)
        ((struct weir_grpc *)weir_connection_workspace(context))
            ->ping_answered(http2, frame->ping.opaque_data);
    if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA)
        return 0;
    struct weir_grpc_stream *stream =
        nghttp2_session_get_stream_user_data(http2, frame->hd.stream_id);
    if (!stream)
        return 0;
    if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
        weir_grpc_stream_route(stream);
    if (end)
        weir_grpc_stream_end(stream);
    return 0;
}

static int on_invalid_frame(nghttp2_session *http2, const nghttp2_frame *frame, int error,
                            void *context)
{
    (void)error;
    weir_grpc_session_glitch(context, 10);
    if (frame->hd.type == NGHTTP2_HEADERS &&
        nghttp2_session_get_stream_remote_close(http2, frame->hd.stream_id) < 0)
        weir_grpc_frames_cut(weir_grpc_session(context), (uint32_t)frame->hd.stream_id);
    return 0;
}

static int on_data_chunk(nghttp2_session *http2, uint8_t flags, int32_t id, const uint8_t *data,
                         size_t size, void *context)
{
    struct weir_grpc_stream *stream = nghttp2_session_get_stream_user_data(http2, id);
    (void)flags, (void)context;
    if (stream)
        weir_grpc_stream_take(stream, (const char *)data, size);
    else
        nghttp2_session_consume(http2, id, size);
    return 0;
}

/* An answer that comes before the request is whole: the client need not go on (RFC 9113 8.1). */
static int on_frame_send(nghttp2_session *http2, const nghttp2_frame *frame, void *context)
{
    (void)context;
    if (frame->hd.type == NGHTTP2_DATA) {
        struct weir_grpc_stream *sender =
            nghttp2_session_get_stream_user_data(http2, frame->hd.stream_id);
        if (sender && sender->method && sender->method->sent)
            sender->method->sent(sender);
        return 0;
    }
    if (frame->hd.type != NGHTTP2_HEADERS || !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
        return 0;
    const struct weir_grpc_stream *stream =
        nghttp2_session_get_stream_user_data(http2, frame->hd.stream_id);
    if (stream && !stream->whole)
        nghttp2_submit_rst_stream(http2, NGHTTP2_FLAG_NONE, frame->hd.stream_id, NGHTTP2_NO_ERROR);
    return 0;
}

static int on_stream_close(nghttp2_session *http2, int32_t id, uint32_t error, void *context)
{
    struct weir_grpc_stream *stream = nghttp2_session_get_stream_user_data(http2, id);
    struct weir_grpc_session *session = weir_grpc_session(context);
    if (!(stream && stream->whole) && session->reset != (uint32_t)id)
        weir_grpc_frames_cut(session, (uint32_t)id);
    if (!stream)
        return 0;
    if (error == NGHTTP2_NO_ERROR)
        session_credit(session);
    nghttp2_session_set_stream_user_data(http2, id, NULL);
    weir_grpc_stream_close(stream);
    return 0;
}

int weir_grpc_callbacks_open(nghttp2_session_callbacks **callbacks)
{
    if (nghttp2_session_callbacks_new(callbacks) < 0)
        return WEIR_ERR_MEMORY;
    nghttp2_session_callbacks_set_on_begin_headers_callback(*callbacks, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(*callbacks, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(*callbacks, on_frame_recv);
    nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(*callbacks, on_invalid_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(*callbacks, on_data_chunk);
    nghttp2_session_callbacks_set_on_frame_send_callback(*callbacks, on_frame_send);
    nghttp2_session_callbacks_set_on_stream_close_callback(*callbacks, on_stream_close);
    return 0;
}
