/* SPDX-License-Identifier: Apache-2.0 */
/* A connection: a socket, the request that is coming in, the replies that are owed.
 *
 *   input    bytes are read into the worker's one large read buffer and parsed there; only what is
 *            left of an unfinished request moves to a buffer of the connection's own. An idle
 *            connection holds no buffer (about 700 bytes in all).
 *   slots    replies owed, in order; at most WEIR_OWED_MAX by weight, then reading stops
 *   output   the replies that are ready leave in one write at the end of a turn; what the socket
 *            does not take is kept, and reading stops while more than WEIR_OUTPUT_MAX is kept
 *
 *   TLS      a session between the socket and all that; the header of the PROXY protocol
 *            comes before it, in clear
 *
 * Time limits (all enforced by the worker's wheel, up to one tick late):
 *   a request from its first byte to its last      WEIR_REQUEST_MS, and WEIR_BODY_MS more for a
 *                                                  body: slow senders get 408 and are cut
 *   nothing begun, nothing owed                    WEIR_IDLE_MS: closed
 *   a reply that the client does not read          WEIR_STALL_MS without progress: reset
 *   a TLS handshake, from the connection on        WEIR_REQUEST_MS: closed
 *   after the last reply, until the client closes  WEIR_LINGER_MS (closing at once would reset the
 *                                                  connection and could destroy the reply,
 *                                                  RFC 9112 9.6)
 *
 * Threads: one owner, the worker.
 */
#ifndef WEIR_SERVER_NET_CONNECTION_H
#define WEIR_SERVER_NET_CONNECTION_H

#include <uv.h>

#include "base/timer_wheel.h"
#include "core/text/address.h"
#include "rules/request.h"
#include "server/daemon/limits.h"
#include "server/net/front.h"
#include "server/net/peers.h"
#include "wire/tls/tls.h"

enum weir_connection_state {
    WEIR_CONNECTION_PROXY,   /* the PROXY protocol's header comes first */
    WEIR_CONNECTION_OPEN,    /* requests and replies */
    WEIR_CONNECTION_ENDING,  /* nothing is read any more; what is owed is written */
    WEIR_CONNECTION_LINGER,  /* all is written; waits for the client to close */
    WEIR_CONNECTION_CLOSING, /* uv_close was called */
};

struct weir_listener;

struct weir_connection {
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    };
    struct weir_timer timer;
    struct weir_listener *listener;
    struct weir_worker *worker;
    struct weir_connection *previous, *next; /* all of the worker's */
    struct weir_connection *next_dirty, *next_stalled;
    struct weir_tls *tls;           /* NULL: plain */
    struct weir_address peer;       /* family 0: a Unix socket */
    struct weir_peer_places places; /* of that address, in worker->peers */
    struct weir_buffer *input, *aside;
    struct weir_slot *first, *last;
    struct weir_slot *begun; /* whose request is done in pieces (net/pieces.h); NULL: none is */
    uint32_t promised;       /* decisions that it may yet take */
    bool going;              /* it has begun, and does not wait for that any more */
    uint64_t request_deadline_ms; /* 0: no request is begun */
    struct weir_slot *held;       /* its reply waits until held_until_ms; NULL: none does */
    uint64_t held_until_ms;
    size_t output_bytes; /* kept for a slow reader */
    uint32_t owed;       /* weight of the slots */
    uint8_t state;
    uint8_t guesses; /* wrong passwords and tokens in a row */
    bool dirty, stalled, paused, eof;
    uint64_t front_state[WEIR_FRONT_STATE_BYTES / 8];
};

/* Starts with an accepted stream, and its peer, in `connection` (from weir_worker_connection). */
void weir_connection_start(struct weir_connection *connection);

/* Says why, and closes as after a last reply. */
void weir_connection_cut(struct weir_connection *connection, enum weir_cut why);

/* Closes at once. What is owed is cancelled. */
void weir_connection_close(struct weir_connection *connection);

/* Ends a turn for this connection: writes the replies that are ready, in order, and goes on
 * reading where it had stopped. */
void weir_connection_flush(struct weir_connection *connection);

/* Continues with what was read but not parsed, once there is room for it again; one that waits for
 * decisions (`stalled`) only when the worker says so. */
void weir_connection_resume(struct weir_connection *connection);

/* The deadline of its timer has passed. */
void weir_connection_expire(struct weir_connection *connection);

/* The worker is shutting down: the next reply is the last. */
void weir_connection_drain(struct weir_connection *connection);

/* --- For front ends --------------------------------------------------------------------------- */

/* A new slot, the connection's last; NULL: no memory (return -1 from parse). A slot that waits for
 * no decision is written at the end of the turn. */
struct weir_slot *weir_connection_slot(struct weir_connection *connection);

/* Takes a slot back before it is written; its decisions are the caller's. */
void weir_connection_drop_slot(struct weir_connection *connection, struct weir_slot *slot);

/* Whether reading, and beginning what was read, has to stop for now; then it does, and front->parse
 * or front->resume is called again when it can go on. */
bool weir_connection_pause(struct weir_connection *connection);

/* Lets the slot wait for a decision, which is queued in the engine. */
void weir_slot_wait(struct weir_slot *slot, struct weir_decision *decision);

/* Lets the slot wait until who is calling is known for a decision (weir_engine_look); it is queued,
 * or given back, in slot->again. */
void weir_slot_look(struct weir_slot *slot, struct weir_decision *decision);

/* The slot's request is done in pieces (net/pieces.h), each by one call of slot->more; nothing
 * more is read from the connection until weir_slot_end, after which the slot waits for its
 * decisions only. A piece says what comes next: weir_pieces_go_on, weir_slot_pause, or
 * weir_slot_end. */
void weir_slot_begin(struct weir_slot *slot, void (*more)(struct weir_slot *));
void weir_slot_end(struct weir_slot *slot);
/* The next piece comes when what the slot waits for is done. */
void weir_slot_pause(struct weir_slot *slot);

/* Holds the connection's last reply back for so long. Until then nothing more is read or parsed;
 * other connections go on. One reply at a time. */
void weir_connection_hold(struct weir_connection *connection, uint32_t wait_ms);

/* The slot's reply is a finished text of so many bytes. */
void weir_slot_weigh(struct weir_slot *slot, size_t bytes);

/* Sets the attributes that tell who is at the other end (tls.client.*), after all others: no
 * request can set them itself. */
void weir_connection_tell_peer(const struct weir_connection *connection,
                               struct weir_request *request);

/* The address that the client came to: a system call. False: none, a Unix socket. */
bool weir_connection_own_address(const struct weir_connection *connection,
                                 struct weir_address *own);

void *weir_connection_workspace(struct weir_connection *connection);

/* Writes what `output` holds and then `size` bytes more. */
void weir_connection_send(struct weir_connection *connection, struct weir_output *output,
                          const char *data, size_t size);

/* The request's head is complete and its body is coming: gives it WEIR_BODY_MS, once. */
void weir_connection_begin_body(struct weir_connection *connection);

#endif
