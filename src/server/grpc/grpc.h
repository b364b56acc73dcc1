/* SPDX-License-Identifier: Apache-2.0 */
/* gRPC as a front end: an nghttp2 session a connection, a stream a call.
 *
 *   bytes ─▶ nghttp2 ─▶ streams: head, then messages ─▶ method->read, when a message is whole
 *                       request whole ─▶ queue of the connection ─▶ method->begin, when decisions
 *                                                                   can be taken
 *   bytes ◀─ nghttp2 ◀─ weir_grpc_reply, weir_grpc_fail ◀─ method->finish, when they are done
 *
 * A stream is one buffer of the worker's: this struct, and behind it the first block of the arena
 * in which its message is read and its answer made. So a call allocates nothing; nor does nghttp2,
 * whose memory comes from the worker's own lists (memory.h).
 *
 * What a peer may cost (daemon/limits.h): streams, bytes of unfinished messages, header fields,
 * frames without requests, and time: a request is whole within WEIR_REQUEST_MS, an answer taken
 * within WEIR_STALL_MS, both whatever the peer does with windows. Past a limit of a stream the
 * stream is reset or failed; past one of the connection it gets GOAWAY.
 *
 * Threads: a workspace belongs to one worker.
 */
#ifndef WEIR_SERVER_GRPC_GRPC_H
#define WEIR_SERVER_GRPC_GRPC_H

#include <nghttp2/nghttp2.h>

#include "engine/http/denial.h"
#include "server/adhoc/request_limits.h"
#include "server/daemon/worker.h"
#include "server/grpc/memory.h"
#include "wire/grpc/arena.h"
#include "wire/grpc/grpc.h"
#include "wire/http/http2_frames.h"
#include "wire/http/ratelimit_headers.h"
#include "wire/json/answer.h"

struct weir_daemon;
struct weir_grpc_stream;
struct weir_grpc_watch;
struct weir_grpc_quota;

struct weir_grpc_method {
    struct weir_bytes path;
    const char *name; /* in metrics */
    bool public;      /* needs no token */
    bool streams;     /* any number of messages either way */

    /* A message is whole: reads it, into the stream's arena. May answer. */
    void (*read)(struct weir_grpc_stream *stream, struct weir_bytes message);
    /* The client has said all, and up to WEIR_BATCH_MAX decisions may be taken. Answers, or queues
     * decisions through weir_grpc_wait. */
    void (*begin)(struct weir_grpc_stream *stream);
    /* All decisions that were waited for are done. Answers. */
    void (*finish)(struct weir_grpc_stream *stream);
    /* The stream ends without `finish`; NULL: nothing to give back. */
    void (*drop)(struct weir_grpc_stream *stream);
    /* DATA of the stream is on its way to the socket; NULL: it does not matter. */
    void (*sent)(struct weir_grpc_stream *stream);
};

/* Eight are served; counters of the others stay 0 and are not shown. */
#define WEIR_GRPC_METHODS_MAX 16
#define WEIR_GRPC_STATUSES 17

/* Header fields of one request that are repeated, and that the rules read: Envoy takes 60 KiB of
 * all fields (max_request_headers_kb). */
#define WEIR_GRPC_JOINED_MAX (64 * 1024)

/* What the gRPC listener of one worker works with. */
struct weir_grpc {
    struct weir_worker *worker;
    struct weir_daemon *daemon;
    const struct weir_grpc_method *methods; /* methods[0..method_count), of front.c */
    uint32_t method_count;
    /* A PING was answered, perhaps one behind an assignment of a quota. */
    void (*ping_answered)(nghttp2_session *http2, const uint8_t opaque[8]);
    struct weir_envoy_service *envoy;  /* NULL: not configured */
    struct weir_request_limits limits; /* of weir.v1.Limiter */
    struct weir_grpc_memory memory;
    nghttp2_mem allocator;
    nghttp2_session_callbacks *callbacks;
    nghttp2_option *options;
    struct weir_grpc_watch *watches;    /* streams of Health/Watch */
    struct weir_grpc_quota *quotas;     /* streams of StreamRateLimitQuotas */
    struct weir_grpc_quota *quota_turn; /* the one that is looked at first; may be NULL */
    uint32_t quota_flights;             /* of theirs: see quota_flight.h */
    uint64_t ages;                      /* draws how old a connection may become */
    struct weir_request attributes;     /* of the call that is at work */
    char joined[WEIR_GRPC_JOINED_MAX];  /* its repeated header fields */
    struct weir_answer answer;
    char lease[WEIR_LEASE_TOKEN_MAX];
    char json[WEIR_ANSWER_JSON_MAX];
    char headers[WEIR_RATELIMIT_HEADERS_MAX + WEIR_DENIAL_FIELDS_MAX];
    /* By method (the last: no method) and status. */
    _Atomic uint64_t calls[WEIR_GRPC_METHODS_MAX + 1][WEIR_GRPC_STATUSES];
};

enum weir_grpc_leaving {
    WEIR_GRPC_STAYS,
    WEIR_GRPC_NOTICED, /* the client knows that it will have to go */
    WEIR_GRPC_LEFT,    /* no new stream; it ends with the last that is open */
};

/* A connection's own, in its front_state. */
struct weir_grpc_session {
    nghttp2_session *http2; /* NULL: not begun */
    struct weir_grpc_stream *streams;
    struct weir_grpc_stream *ready, **ready_end; /* whole requests that wait for decisions */
    uint64_t opened_ms, quiet_ms;                /* when the last stream was closed */
    uint64_t leave_ms; /* when the next step of leaving is due; 0: never */
    uint64_t glitched_ms;
    uint32_t glitches;
    uint8_t leaving;
    bool greeted; /* the client's SETTINGS have come */
    bool ended;   /* by an error of the client's: nothing of it is read any more */

    /* What its frames are about (frames.c). */
    bool head_is_extra; /* the head that is being read begins no stream */
    struct weir_http2_walk walk;
    uint32_t head_bytes;
    uint32_t newest;                 /* the highest stream that the client has begun */
    uint64_t begun;                  /* bit i: it has begun stream newest - 2i */
    uint32_t reset;                  /* the stream that it has reset last */
    uint32_t cut[WEIR_GRPC_CUT_MAX]; /* streams that weir closed before their end; 0: none */
    uint32_t cuts;                   /* how many there were; the next one's place in `cut` */
    uint32_t cut_up_to;              /* some older ones are up to here */
};
_Static_assert(sizeof(struct weir_grpc_session) <= WEIR_FRONT_STATE_BYTES, "grow it");

struct weir_grpc_stream {
    struct weir_connection *connection;
    struct weir_grpc_stream *previous, *next; /* of the connection */
    struct weir_grpc_stream *next_ready;
    struct weir_buffer *self, *blocks;     /* this; further blocks of the arena */
    struct weir_buffer *body;              /* a message that is not whole */
    const struct weir_grpc_method *method; /* NULL: none of that name */
    struct weir_slot *slot;                /* while it waits for decisions */
    void *request, *call;                  /* the method's: what was read; what it waits for */
    struct weir_grpc_arena arena;
    uint64_t begun_ms, answered_ms;
    uint64_t deadline_ms; /* of grpc-timeout; 0: none */
    uint64_t timeout_ns;
    const char *out; /* what is to be sent: out[sent..size) */
    size_t out_size, out_sent;
    struct weir_buffer *streamed; /* behind `out`, where the method streams */
    uint64_t stale_ns;       /* when `out` may no longer be sent, by the boot clock; 0: never */
    const char *status_text; /* encoded, in the arena; NULL: none */
    size_t status_text_size;
    uint32_t header_bytes, held; /* bytes that keep the connection's window closed */
    int32_t id;
    uint32_t messages;
    uint8_t status;
    bool is_post, is_grpc, has_token, bad_timeout, encoded; /* of its head */
    bool whole;                                             /* the client has said all */
    bool ready;                                             /* on the session's list */
    bool responded;                                         /* the response's head is on its way */
    bool answered; /* and so is its end, or will be: nothing more is read */
    bool said_all; /* `out` is the last of it */
};

static inline struct weir_grpc_session *weir_grpc_session(struct weir_connection *connection)
{
    return (struct weir_grpc_session *)(void *)connection->front_state;
}

static inline struct weir_grpc *weir_grpc_of(const struct weir_grpc_stream *stream)
{
    return weir_connection_workspace(stream->connection);
}

#endif
