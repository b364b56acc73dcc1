/* SPDX-License-Identifier: Apache-2.0 */
/* Server-sent events (HTML Living Standard, section 9.2): one text, once a second, to each browser
 * that listens, with the parts that it has asked for.
 *
 *   join ──▶ a slot with the head of the reply, and one behind it that waits for as long as the
 *            stream lasts; nothing more is read from the connection
 *   tick ──▶ the text of the moment, made once, to each client whose connection has written
 *            all of the one before; another client loses the tick
 *   end  ──▶ the slot that waits is written (nothing), and the connection ends
 *
 * To a client that takes gzip the stream is compressed; what it had before makes each text short.
 *
 * So a slow client costs at most one text that its socket did not take, and WEIR_STALL_MS after it
 * stopped reading its connection is cut (net/connection.h). A client that has gone is found by the
 * next tick at the latest.
 *
 * Bounds: WEIR_STREAM_CLIENTS_MAX clients; a further one gets 503.
 * Memory: 2 KiB, and a packer for each client that takes gzip. Threads: the admin worker's.
 */
#ifndef WEIR_FEATURE_DASHBOARD_SERVER_STREAM_H
#define WEIR_FEATURE_DASHBOARD_SERVER_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "feature/dashboard/server/sessions.h"

#define WEIR_STREAM_CLIENTS_MAX 32

struct weir_http_call;
struct weir_packer;
struct weir_slot;
struct weir_stream;

struct weir_stream_client {
    struct weir_stream *stream;
    struct weir_slot *slot;     /* NULL: a free place */
    struct weir_packer *packer; /* NULL: it gets texts as they are */
    unsigned parts;             /* of snapshots, a bit for each (snapshot.h) */
    bool begun;                 /* it has had a text */
    bool by_session;            /* it listens as long as this session lasts */
    unsigned char session[WEIR_SESSION_ID_BYTES];
};

struct weir_stream {
    struct weir_stream_client clients[WEIR_STREAM_CLIENTS_MAX];
    unsigned count;
    uint64_t ticks, lost; /* texts sent to clients; those that clients lost */
    uint64_t refused;     /* clients beyond the bound */
    uint64_t bytes;       /* sent, without heads */
    bool stopping;        /* no client is taken any more */
};

/* Answers a call with a stream, which begins with the next tick. `session`: whose end ends it;
 * NULL: none. Answers with a problem where there is no room. */
void weir_stream_join(struct weir_stream *stream, struct weir_http_call *call,
                      const unsigned char *session, unsigned parts);

/* All parts that clients have asked for. */
unsigned weir_stream_parts(const struct weir_stream *stream);

/* Sends a text of whole events to the clients that have asked for exactly these parts. */
void weir_stream_send(struct weir_stream *stream, unsigned parts, const char *text, size_t size);

/* Ends the streams of sessions that are no more, by `is_good`. */
void weir_stream_check(struct weir_stream *stream,
                       bool (*is_good)(void *context, const unsigned char *session), void *context);

/* Ends all streams. Browsers connect again after a second, where they may. */
void weir_stream_end(struct weir_stream *stream);

#endif
