/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of the server, all in one place: a name, a number, why that number, and what happens
 * at the limit. docs/limits.md tells users. Those of one request's bytes are the codecs' own
 * (wire/http/http1.h and others); the table's are in table/table.h.
 */
#ifndef WEIR_SERVER_DAEMON_LIMITS_H
#define WEIR_SERVER_DAEMON_LIMITS_H

/* --- Threads ---------------------------------------------------------------------------------- */

/* Threads that decide: each takes an owner slot of the table (WEIR_TABLE_OWNERS_MAX = 256), and so
 * do the main thread and the other processes on a shared region. More is a usage error. */
#define WEIR_WORKERS_MAX 128

/* Decisions that one request may need: those of the longest batch. */
#define WEIR_BATCH_MAX 1000

/* Decisions of one worker: four of the longest batches. When they are used up, connections wait
 * their turn; the store's deadline bounds how long. */
#define WEIR_DECISIONS 4096
/* Decisions that are gathered before they are made: beyond it batches gain nothing, and what they
 * touch of the pool and of their connections (up to 8 KiB each) leaves the cache: gRPC calls of ten
 * descriptors take 1.4 times the CPU time at 1,024, and no other front end is better off there.
 * Connections with more wait for the next round of the same turn. */
#define WEIR_GATHER_MAX 128

/* Decisions of one turn, about: after so many the turn ends, and the loop reads what has come
 * meanwhile, although connections still wait with more. 512 take a quarter of a millisecond, a
 * hundred times as long as the poll between. */
#define WEIR_TURN_MAX 512
/* Checks of a batch that are read, decided or answered before others have their turn
 * (net/pieces.h): as many as are gathered. */
#define WEIR_PIECE_MAX WEIR_GATHER_MAX
/* Batches that have begun, each of which holds up to WEIR_BATCH_MAX decisions: a second continues
 * while a first waits for its store. A quarter of the pool is left to requests that are no batch.
 */
#define WEIR_PIECES_BEGUN 2
/* A batch whose body is no longer is done at once: some fifty checks, and a long batch of empty
 * ones costs no more. */
#define WEIR_BATCH_SMALL 4096

/* --- Connections ------------------------------------------------------------------------------ */

/* Connections of one listener, a worker, unless the process may open fewer files (net/files.h):
 * 16,384 idle ones are 12 MiB, and a proxy needs a few dozen. Past it a connection is answered 503
 * and closed, whatever other listeners have room for. */
#define WEIR_CONNECTIONS_MAX 16384
/* The same for an admin listener: a Prometheus, some scripts and people. */
#define WEIR_ADMIN_CONNECTIONS_MAX 256
/* Connections of a listener beyond that which are answered with 503 at one time; still more are
 * closed at once. */
#define WEIR_REFUSALS_MAX 64
/* A listener that has room for fewer is worth a warning at start: pools of a few backends take some
 * hundred. */
#define WEIR_CONNECTIONS_FEW 1000
/* Between two lines of the log that say the same of one listener, or of one address. */
#define WEIR_LOG_AGAIN_MS 60000

/* Connections that wait to be accepted; the kernel caps it at net.core.somaxconn. */
#define WEIR_BACKLOG 4096
/* Connections accepted at one go, so that those that are open get their turn in a flood of new
 * ones. */
#define WEIR_ACCEPTS_MAX 64

/* What is owed to one connection, by weight: 1 a reply, 1 a decision, 1 for 256 bytes of a finished
 * text. So 256 pipelined checks, or one batch. Clients gain nothing beyond a few dozen, and what is
 * owed pins decisions and buffers of the worker. At the limit it is not read from until half is
 * written. */
#define WEIR_OWED_MAX 512
/* Bytes kept for a client that does not read. At the limit it is not read from until it has read
 * half of them. */
#define WEIR_OUTPUT_MAX 65536

/* --- Wrong passwords and tokens (net/guesses.h)
 * ----------------------------------------------------
 */

/* In a row on one connection; then it is closed. */
#define WEIR_GUESSES_MAX 5
/* From one address, answered at once; then one in WEIR_GUESS_MS is. A person types three; a fleet
 * that comes back with an old password learns so from its first few connections. */
#define WEIR_GUESSES_FREE 5
#define WEIR_GUESS_MS 1000
/* What an answer waits at most; a guess that would have to wait longer is refused unseen then.
 * Below WEIR_SHUTDOWN_MS, and below what clients wait for a reply (redis-py: for ever; ioredis: 10
 * s). */
#define WEIR_GUESS_WAIT_MS 5000
/* Addresses that are remembered: 64 KiB. */
#define WEIR_GUESSERS 2048

/* Addresses without a connection whose rate of new ones is remembered (net/peers.h): 160 KiB. */
#define WEIR_PEERS_KEPT 4096

/* Replies that a listener holds back at a time (net/holds.h): the connections of a busy proxy; and
 * of these the late denials of one prefix: the connections that a browser opens, and two more. */
#define WEIR_HELD_MAX 1000
#define WEIR_HELD_PREFIX_MAX 8

/* --- Time ------------------------------------------------------------------------------------- */

/* A decision of the shared store, unless the configuration says otherwise: Envoy waits 20 ms. Then
 * on_store_error decides. */
#define WEIR_STORE_PATIENCE_NS 20000000
/* A lock in a state file whose holder, another process, lives: it is held for less than a
 * microsecond, so a process that keeps it for so long is stopped, or waits for a processor on a
 * machine that has far too few. Then on_store_error decides, and no later wait for that holder is
 * as long. */
#define WEIR_STATE_PATIENCE_NS 100000000
/* The precision of the limits below: they end up to so much late. */
#define WEIR_TICK_MS 250
/* A request from its first byte to its last: a head is one packet or two; nginx gives 60 s,
 * attackers use less. Then 408, and the connection is closed. */
#define WEIR_REQUEST_MS 10000
/* The same for a body, from the end of its head: 1 MiB at 35 kB/s. */
#define WEIR_BODY_MS 30000
/* Nothing begun and nothing owed: nginx's keepalive_timeout; proxies keep theirs shorter. Closed.
 */
#define WEIR_IDLE_MS 75000
/* The same for Redis clients: their pools keep connections for as long as the program runs, and
 * Redis closes none. A peer that is gone is found sooner, by WEIR_KEEPALIVE_S. */
#define WEIR_RESP_IDLE_MS 86400000
/* Silence after which the kernel asks whether the peer is still there: Redis' tcp-keepalive. */
#define WEIR_KEEPALIVE_S 300
/* A reply that the client does not read, without progress of 64 KiB. Closed. */
#define WEIR_STALL_MS 15000
/* After the last reply, until the client closes too: closing at once would reset the connection and
 * could destroy the reply (RFC 9112 9.6). */
#define WEIR_LINGER_MS 2000
/* At shutdown: how long an idle connection may still begin a request. */
#define WEIR_DRAIN_MS 500
/* At shutdown: how long it waits for what is in flight. */
#define WEIR_SHUTDOWN_MS 10000

/* --- Memory of one worker --------------------------------------------------------------------- */

/* What one read of a socket may bring. */
#define WEIR_READ_BYTES 65536
/* Buffers in use (unfinished requests, replies not taken): past it, 503 and closed. */
#define WEIR_BUFFERS_USED_MAX (256u << 20)
/* Buffers kept for reuse. */
#define WEIR_BUFFERS_IDLE_MAX (4u << 20)

/* --- HTTP/2 and gRPC ---------------------------------------------------------------------------
 */

/* Requests that a connection may have open: RFC 9113 6.5.2 advises at least 100. More are refused
 * (REFUSED_STREAM), which clients repeat. */
#define WEIR_GRPC_STREAMS_MAX 128
/* One message, as of HTTP: 1 MiB. Then RESOURCE_EXHAUSTED. */
#define WEIR_GRPC_MESSAGE_MAX (1u << 20)
/* What unfinished messages of one connection may hold together: the window of the connection, which
 * opens again only when a message is done with. */
#define WEIR_GRPC_WINDOW (2u << 20)
/* What one message may grow to in memory, and its answer: WEIR_ENVOY_DESCRIPTORS_MAX with all that
 * hangs on them are 300 KiB. Then RESOURCE_EXHAUSTED. */
#define WEIR_GRPC_ARENA_MAX (4u << 20)
/* Header fields of one request, decoded. Then the stream is reset (ENHANCE_YOUR_CALM). */
#define WEIR_GRPC_HEADERS_MAX 16384
/* A head as it is sent, with all its CONTINUATION frames: Huffman coding makes no field of a sane
 * client longer. Then GOAWAY (ENHANCE_YOUR_CALM). */
#define WEIR_GRPC_BLOCK_MAX (2 * WEIR_GRPC_HEADERS_MAX)
/* Streams that weir closed first, of which it is known whether the client has ended them since; on
 * older ones what comes late is ignored too. */
#define WEIR_GRPC_CUT_MAX 16
/* Frames that ask for work and bring no request: PING, SETTINGS, PRIORITY, RST_STREAM,
 * WINDOW_UPDATE, empty DATA, DATA on a stream that weir has closed, unknown kinds. Each
 * costs 1, a head that begins no request 1 for each 256 bytes more, a malformed frame 10; a
 * finished call gives 4 back, time WEIR_GRPC_GLITCHES_PER_SECOND. Past the limit GOAWAY
 * (ENHANCE_YOUR_CALM). */
#define WEIR_GRPC_GLITCHES_MAX 1000
#define WEIR_GRPC_GLITCHES_PER_SECOND 100
#define WEIR_GRPC_GLITCHES_CREDIT 4
/* No stream open: gRPC clients keep connections for as long as the program runs. */
#define WEIR_GRPC_IDLE_MS 86400000
/* How often a connection with open streams looks at their times. */
#define WEIR_GRPC_CHECK_MS 500
/* Between the announcement that a connection will end and its end: the round trip in which a client
 * may still have begun requests (RFC 9113 6.8). */
#define WEIR_GRPC_NOTICE_MS 500
/* Answers of one reflection stream that the client has not read. */
#define WEIR_GRPC_STREAMED_MAX (256u << 10)

/* --- Logs ------------------------------------------------------------------------------------- */

/* Lines a second, errors included: a disk that an attacker fills is worse than a line that is
 * missing. What is left out is counted. */
#define WEIR_LOG_LINES_PER_SECOND 100
/* Longer values are cut; below PIPE_BUF, so that one write is one line. */
#define WEIR_LOG_LINE_MAX 2048

#endif
