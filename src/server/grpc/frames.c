/* SPDX-License-Identifier: Apache-2.0 */
/* see frames.h */
#include "server/grpc/frames.h"

#include "server/grpc/session.h"

/* How many streams back it is known which were begun. */
#define BEGUN_MAX 64

/* What a head costs that nobody asked for: a table of 4,096 bytes makes a byte of it into a field.
 */
static uint32_t head_cost(const struct weir_http2_head *head)
{
    return 1 + head->length / 256;
}

static bool is_begun(const struct weir_grpc_session *session, uint32_t stream)
{
    uint32_t back = (session->newest - stream) / 2;
    return back >= BEGUN_MAX || (session->begun >> back & 1) != 0;
}

static void begin(struct weir_grpc_session *session, uint32_t stream)
{
    uint32_t ahead = (stream - session->newest) / 2;
    session->begun = (ahead < BEGUN_MAX ? session->begun << ahead : 0) | 1;
    session->newest = stream;
}

void weir_grpc_frames_cut(struct weir_grpc_session *session, uint32_t stream)
{
    uint32_t *oldest = &session->cut[session->cuts++ % WEIR_GRPC_CUT_MAX];
    if (*oldest > session->cut_up_to)
        session->cut_up_to = *oldest; /* of these it is not known any more */
    *oldest = stream;
}

/* Whether more of a closed stream may be in flight; with `ended`, no more will be. */
static bool is_cut(struct weir_grpc_session *session, uint32_t stream, bool ended)
{
    for (int i = 0; i < WEIR_GRPC_CUT_MAX; i++) {
        if (session->cut[i] != stream)
            continue;
        if (ended)
            session->cut[i] = 0;
        return true;
    }
    return stream <= session->cut_up_to || session->leaving == WEIR_GRPC_LEFT;
}

/* HEADERS or DATA on a stream that nghttp2 has closed, or never opened. */
static void judge_closed(struct weir_connection *connection, const struct weir_http2_head *head)
{
    struct weir_grpc_session *session = weir_grpc_session(connection);
    if (is_cut(session, head->stream, head->flags & NGHTTP2_FLAG_END_STREAM))
        weir_grpc_session_glitch(connection, head->type == NGHTTP2_HEADERS ? head_cost(head) : 1);
    else
        weir_grpc_session_end(connection, is_begun(session, head->stream) ? NGHTTP2_STREAM_CLOSED
                                                                          : NGHTTP2_PROTOCOL_ERROR);
}

/* Counts a frame, and may end the session. nghttp2 knows all frames before it, unless it begins a
 * stream. */
static void judge(struct weir_connection *connection, const struct weir_http2_head *head)
{
    struct weir_grpc_session *session = weir_grpc_session(connection);
    bool of_client = head->stream % 2 == 1, data = head->type == NGHTTP2_DATA;
    bool headers = head->type == NGHTTP2_HEADERS;
    if (headers || head->type == NGHTTP2_CONTINUATION) {
        session->head_bytes = headers ? head->length : session->head_bytes + head->length;
        if (session->head_bytes > WEIR_GRPC_BLOCK_MAX) {
            weir_grpc_session_end(connection, NGHTTP2_ENHANCE_YOUR_CALM);
            return;
        }
    }
    if (headers && of_client && head->stream > session->newest) {
        session->head_is_extra = false;
        begin(session, head->stream);
        return;
    }
    bool closed =
        of_client && head->stream <= session->newest &&
        nghttp2_session_get_stream_remote_close(session->http2, (int32_t)head->stream) < 0;
    if ((headers || data) && closed) {
        session->head_is_extra = headers;
        judge_closed(connection, head);
    } else if (headers) {
        session->head_is_extra = true; /* trailers; or an error, which nghttp2 finds */
        weir_grpc_session_glitch(connection, head_cost(head));
    } else if (head->type == NGHTTP2_CONTINUATION) {
        if (session->head_is_extra)
            weir_grpc_session_glitch(connection, head_cost(head));
    } else if (!data || (!head->length && !(head->flags & NGHTTP2_FLAG_END_STREAM))) {
        weir_grpc_session_glitch(connection, 1);
    }
    if (head->type == NGHTTP2_RST_STREAM) {
        session->reset = head->stream;
        if (closed)
            is_cut(session, head->stream, true);
    }
}

static int feed(struct weir_grpc_session *session, const char *data, size_t size)
{
    ssize_t n = size ? nghttp2_session_mem_recv(session->http2, (const uint8_t *)data, size) : 0;
    return n < 0 ? (int)n : 0;
}

int weir_grpc_frames_take(struct weir_connection *connection, const char *data, size_t size)
{
    struct weir_grpc_session *session = weir_grpc_session(connection);
    struct weir_http2_head head;
    size_t at = 0, fed = 0;
    uint32_t fresh = 0; /* the stream that the frames which nghttp2 has not seen begin */
    int err = 0;
    while (!session->ended && weir_http2_walk_next(&session->walk, data, size, &at, &head)) {
        bool begins = head.type == NGHTTP2_HEADERS && head.stream > session->newest;
        bool filled = head.length || (head.flags & NGHTTP2_FLAG_END_STREAM);
        bool goes_on = head.stream == fresh && head.type == NGHTTP2_DATA && filled;
        size_t start = at > WEIR_HTTP2_HEAD_SIZE ? at - WEIR_HTTP2_HEAD_SIZE : 0;
        if (!begins && !goes_on && start > fed) {
            err = feed(session, data + fed, start - fed);
            fed = start;
            fresh = 0;
        }
        if (err < 0)
            return err;
        if (!goes_on)
            judge(connection, &head);
        fresh = begins && !(head.flags & NGHTTP2_FLAG_END_STREAM) ? head.stream : fresh;
    }
    return session->ended ? 0 : feed(session, data + fed, size - fed);
}
