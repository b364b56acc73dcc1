/* SPDX-License-Identifier: Apache-2.0 */
/* The front end of gRPC: sessions on connections, their times and their ends. See grpc.h. */
#include "server/grpc/front.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "feature/envoy/server/call.h"
#include "feature/envoy/server/daemon.h"
#include "server/adhoc/daemon.h"
#include "server/daemon/daemon.h"
#include "server/grpc/authz.h"
#include "server/grpc/frames.h"
#include "server/grpc/health.h"
#include "server/grpc/limiter.h"
#include "server/grpc/quota.h"
#include "server/grpc/ratelimit.h"
#include "server/grpc/reflection.h"
#include "server/grpc/reply.h"
#include "server/grpc/session.h"
#include "server/grpc/stream.h"
#include "server/http/reply.h"

/* --- Begin and end ---------------------------------------------------------------------------- */

static uint64_t grpc_now_ms(const struct weir_connection *connection)
{
    return uv_now(connection->worker->loop);
}

/* How old this connection may become: the setting, a tenth more or less, so that clients that came
 * together don't leave together. */
static uint64_t grpc_age_ms(struct weir_connection *connection)
{
    struct weir_grpc *grpc = weir_connection_workspace(connection);
    uint64_t age_ms = weir_listener_settings(connection->listener)->max_connection_age_ns / 1000000;
    grpc->ages = grpc->ages * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return age_ms - age_ms / 10 + (grpc->ages >> 33) % (age_ms / 5 + 1);
}

static bool grpc_begin(struct weir_connection *connection)
{
    static const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, WEIR_GRPC_STREAMS_MAX},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, WEIR_GRPC_HEADERS_MAX},
    };
    struct weir_grpc *grpc = weir_connection_workspace(connection);
    struct weir_grpc_session *session = weir_grpc_session(connection);
    session->ready_end = &session->ready;
    weir_http2_walk_begin(&session->walk);
    session->opened_ms = session->quiet_ms = session->glitched_ms = grpc_now_ms(connection);
    if (weir_listener_settings(connection->listener)->max_connection_age_ns)
        session->leave_ms = session->opened_ms + grpc_age_ms(connection);
    if (nghttp2_session_server_new3(&session->http2, grpc->callbacks, connection, grpc->options,
                                    &grpc->allocator) < 0)
        return false;
    weir_worker_mark(connection->worker, connection); /* a server's SETTINGS wait for nothing */
    return nghttp2_submit_settings(session->http2, NGHTTP2_FLAG_NONE, settings, 2) == 0 &&
           nghttp2_session_set_local_window_size(session->http2, NGHTTP2_FLAG_NONE, 0,
                                                 WEIR_GRPC_WINDOW) == 0;
}

static void grpc_end(struct weir_connection *connection)
{
    struct weir_grpc_session *session = weir_grpc_session(connection);
    while (session->streams)
        weir_grpc_stream_close(session->streams);
    nghttp2_session_del(session->http2);
    session->http2 = NULL;
}

/* --- Bytes ------------------------------------------------------------------------------------ */

static long grpc_parse(struct weir_connection *connection, char *data, size_t size)
{
    if (weir_grpc_frames_take(connection, data, size) < 0) {
        weir_count(&connection->worker->counters.protocol_errors, 1);
        return -1;
    }
    weir_grpc_session_begin_ready(connection);
    return (long)size;
}

static void grpc_resume(struct weir_connection *connection)
{
    weir_grpc_session_begin_ready(connection);
    weir_worker_mark(connection->worker, connection);
}

static bool grpc_flush(struct weir_connection *connection, struct weir_output *output)
{
    nghttp2_session *http2 = weir_grpc_session(connection)->http2;
    const uint8_t *data;
    ssize_t n = 0;
    if (!http2)
        return true;
    while (connection->output_bytes <= WEIR_OUTPUT_MAX &&
           (n = nghttp2_session_mem_send(http2, &data)) > 0) {
        if ((size_t)n > output->size - output->used)
            weir_connection_send(connection, output, (const char *)data, (size_t)n);
        else
            weir_output_put(output, (const char *)data, (size_t)n);
        if (connection->state == WEIR_CONNECTION_CLOSING)
            return true; /* writing has failed; the session is gone */
    }
    return n >= 0 && (nghttp2_session_want_read(http2) || nghttp2_session_want_write(http2));
}

/* HTTP/2 has no words for one that has not begun, and a session says by GOAWAY what there is to
 * say. */
static void grpc_cut(struct weir_connection *connection, enum weir_cut why,
                     struct weir_output *output)
{
    (void)connection, (void)why, (void)output;
}

/* --- Times ------------------------------------------------------------------------------------ */

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t grpc_deadline_ms(struct weir_connection *connection, uint64_t now_ms)
{
    const struct weir_grpc_session *session = weir_grpc_session(connection);
    uint64_t deadline_ms =
        session->streams ? now_ms + WEIR_GRPC_CHECK_MS : session->quiet_ms + WEIR_GRPC_IDLE_MS;
    if (!session->greeted)
        deadline_ms = earlier(deadline_ms, session->opened_ms + WEIR_REQUEST_MS);
    if (session->leave_ms)
        deadline_ms = earlier(deadline_ms, session->leave_ms);
    return deadline_ms;
}

/* Ends streams that would never end by themselves. */
static void session_end_streamed(struct weir_grpc_session *session)
{
    for (struct weir_grpc_stream *at = session->streams; at; at = at->next)
        if (at->method && at->method->streams)
            weir_grpc_fail(at, WEIR_GRPC_UNAVAILABLE, "the connection ends");
}

/* Takes the next step of leaving: announce it, then no new stream, then the end. */
static void session_leave(struct weir_connection *connection, uint64_t now_ms)
{
    struct weir_grpc_session *session = weir_grpc_session(connection);
    const struct weir_listener_settings *settings = weir_listener_settings(connection->listener);
    uint64_t grace_ms = settings->max_connection_age_grace_ns / 1000000;
    if (session->leaving == WEIR_GRPC_STAYS) {
        nghttp2_submit_shutdown_notice(session->http2);
        session->leaving = WEIR_GRPC_NOTICED;
        session->leave_ms = now_ms + WEIR_GRPC_NOTICE_MS;
    } else if (session->leaving == WEIR_GRPC_NOTICED) {
        nghttp2_submit_goaway(session->http2, NGHTTP2_FLAG_NONE,
                              nghttp2_session_get_last_proc_stream_id(session->http2),
                              NGHTTP2_NO_ERROR, NULL, 0);
        session_end_streamed(session);
        session->leaving = WEIR_GRPC_LEFT;
        session->leave_ms = now_ms + (grace_ms ? grace_ms : WEIR_SHUTDOWN_MS);
    } else {
        weir_connection_close(connection);
    }
}

static void grpc_expire(struct weir_connection *connection, uint64_t now_ms)
{
    struct weir_grpc_session *session = weir_grpc_session(connection);
    struct weir_grpc_stream *next;
    for (struct weir_grpc_stream *at = session->streams; at; at = next) {
        next = at->next;
        weir_grpc_stream_check(at, now_ms);
    }
    bool idle = !session->streams && now_ms >= session->quiet_ms + WEIR_GRPC_IDLE_MS;
    bool silent = !session->greeted && now_ms >= session->opened_ms + WEIR_REQUEST_MS;
    if (silent) {
        weir_count(&connection->worker->counters.timeouts, 1);
        weir_connection_close(connection);
    } else if (session->leave_ms && now_ms >= session->leave_ms) {
        session_leave(connection, now_ms);
    } else if (idle) {
        nghttp2_session_terminate_session(session->http2, NGHTTP2_NO_ERROR);
    }
}

static void grpc_drain(struct weir_connection *connection)
{
    struct weir_grpc_session *session = weir_grpc_session(connection);
    weir_grpc_health_tell(weir_connection_workspace(connection));
    if (session->http2 && session->leaving == WEIR_GRPC_STAYS)
        session_leave(connection, grpc_now_ms(connection));
}

static void grpc_tick(void *workspace)
{
    weir_grpc_health_tell(workspace);
    weir_grpc_quota_tick(workspace);
}

/* --- Workspaces ------------------------------------------------------------------------------- */

#define PATH(text)                                                                                 \
    {                                                                                              \
        (text), sizeof(text) - 1                                                                   \
    }

const struct weir_grpc_method weir_grpc_methods[] = {
    {.path = PATH("/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit"),
     .name = "should_rate_limit",
     .read = weir_grpc_ratelimit_take,
     .begin = weir_grpc_ratelimit_begin,
     .finish = weir_grpc_ratelimit_finish,
     .drop = weir_grpc_ratelimit_drop},
    {.path = PATH("/envoy.service.rate_limit_quota.v3.RateLimitQuotaService/StreamRateLimitQuotas"),
     .name = "stream_rate_limit_quotas",
     .streams = true,
     .read = weir_grpc_quota_read_reports,
     .begin = weir_grpc_quota_begin,
     .drop = weir_grpc_quota_drop,
     .sent = weir_grpc_quota_sent},
    {.path = PATH("/envoy.service.auth.v3.Authorization/Check"),
     .name = "auth_check",
     .read = weir_grpc_authz_take,
     .begin = weir_grpc_authz_begin,
     .finish = weir_grpc_authz_finish,
     .drop = weir_grpc_authz_drop},
    {.path = PATH("/weir.v1.Limiter/Limit"),
     .name = "limit",
     .read = weir_grpc_limiter_take,
     .begin = weir_grpc_limiter_begin,
     .finish = weir_grpc_limiter_finish,
     .drop = weir_grpc_limiter_drop},
    {.path = PATH("/grpc.health.v1.Health/Check"),
     .name = "health_check",
     .public = true,
     .read = weir_grpc_health_check_read,
     .begin = weir_grpc_health_check_begin},
    {.path = PATH("/grpc.health.v1.Health/Watch"),
     .name = "health_watch",
     .public = true,
     .streams = true,
     .read = weir_grpc_health_watch_read,
     .drop = weir_grpc_health_watch_drop},
    {.path = PATH("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"),
     .name = "reflection",
     .streams = true,
     .read = weir_grpc_reflection_read,
     .begin = weir_grpc_reflection_begin},
    {.path = PATH("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"),
     .name = "reflection_v1alpha",
     .streams = true,
     .read = weir_grpc_reflection_read,
     .begin = weir_grpc_reflection_begin},
};
const uint32_t weir_grpc_method_count = sizeof weir_grpc_methods / sizeof *weir_grpc_methods;
_Static_assert(sizeof weir_grpc_methods / sizeof *weir_grpc_methods <= WEIR_GRPC_METHODS_MAX,
               "grow WEIR_GRPC_METHODS_MAX");

static void grpc_close(void *workspace)
{
    struct weir_grpc *grpc = workspace;
    nghttp2_session_callbacks_del(grpc->callbacks);
    nghttp2_option_del(grpc->options);
    weir_grpc_memory_close(&grpc->memory);
    weir_envoy_close(grpc->envoy);
    free(grpc);
}

static void *grpc_open(struct weir_worker *worker, void *server)
{
    struct weir_grpc *grpc = calloc(1, sizeof *grpc);
    if (!grpc)
        return NULL;
    grpc->worker = worker;
    grpc->daemon = server;
    grpc->methods = weir_grpc_methods;
    grpc->method_count = weir_grpc_method_count;
    grpc->ping_answered = weir_grpc_quota_answered;
    grpc->ages = worker->index + 1;
    grpc->allocator = (nghttp2_mem){&grpc->memory, weir_grpc_malloc, weir_grpc_free,
                                    weir_grpc_calloc, weir_grpc_realloc};
    struct weir_envoy_shared *envoy = weir_daemon_envoy(grpc->daemon);
    if ((envoy && weir_envoy_open(&grpc->envoy, envoy, worker, true) < 0) ||
        nghttp2_option_new(&grpc->options) < 0 || weir_grpc_callbacks_open(&grpc->callbacks) < 0) {
        grpc_close(grpc);
        return NULL;
    }
    weir_request_limits_open(&grpc->limits, worker, weir_daemon_given_limits(grpc->daemon));
    nghttp2_option_set_no_auto_window_update(grpc->options, 1);
    nghttp2_option_set_no_closed_streams(grpc->options, 1);
    /* Our own account is the stricter one for peers that bring no requests, and the milder one for
     * those that do and cancel some of them. */
    nghttp2_option_set_stream_reset_rate_limit(grpc->options, 20000, 10000);
    return grpc;
}

const struct weir_front weir_grpc_front = {
    .name = "grpc",
    .request_max = WEIR_READ_BYTES,
    .kind = WEIR_LISTENER_GRPC,
    .setting = "server.grpc",
    .settings = offsetof(struct weir_settings, grpc),
    .option = offsetof(struct weir_server_options, grpc),
    .protocol = "h2",
    .unordered = true,
    .open = grpc_open,
    .close = grpc_close,
    .parse = grpc_parse,
    .cut = grpc_cut,
    .begin = grpc_begin,
    .end = grpc_end,
    .flush = grpc_flush,
    .resume = grpc_resume,
    .deadline_ms = grpc_deadline_ms,
    .expire = grpc_expire,
    .drain = grpc_drain,
    .tick = grpc_tick,
};
