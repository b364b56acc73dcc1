/* SPDX-License-Identifier: Apache-2.0 */
/* One server of a client: its queue of calls, its connection and the next one.
 *
 *   PAUSED ──▶ OPENING ──▶ READY ──▶ DRAINING ──▶ PAUSED …     (any ──▶ ENDED)
 *
 * A connection that is lost comes back by itself, with jittered exponential backoff. Calls whose
 * bytes may have arrived end with WEIR_ERR_IO. Calls that were not sent stay in the queue if a
 * connection is likely soon (redis_node_accepts), else they end with WEIR_ERR_STORE.
 *
 * Threads: that of the client. Times are uv_now in ms.
 */
#ifndef WEIR_STORE_REDIS_CLIENT_NODE_H
#define WEIR_STORE_REDIS_CLIENT_NODE_H

#include "store/redis/client/connection.h"
#include "store/redis/client/send_queue.h"

#define REDIS_ADDRESS_MAX (REDIS_HOST_MAX + 10) /* brackets, colon, port, NUL */

enum redis_node_state {
    REDIS_NODE_PAUSED,  /* no connection; the timer will try again */
    REDIS_NODE_OPENING, /* connecting, or in the handshake */
    REDIS_NODE_READY,
    REDIS_NODE_DRAINING, /* to be closed after the calls in flight */
    REDIS_NODE_ENDED,
};

/* One server. */
struct redis_node {
    struct redis_client *client;
    struct redis_host host; /* of a Unix socket: its path is in the URL */
    uint8_t state;          /* enum redis_node_state */
    uint8_t parts;          /* timer and connection: what libuv still knows */
    bool dirty;             /* in redis_client.dirty */
    bool silent;            /* no reply for most of a second */
    const char *draining;   /* why it is drained */
    uint32_t slots;         /* how many it is the master of */
    uint32_t step;          /* replies of the handshake so far */
    uint32_t attempts;      /* failed connections in a row */
    uint64_t loading;       /* scripts being loaded after NOSCRIPT, by index */
    uint64_t opened_ms, ready_ms, heard_ms, used_ms;
    struct redis_connection *connection;
    bool connection_lives; /* `gone` has not been called */
    struct redis_send_queue send_queue;
    uv_timer_t timer;
    struct redis_node *next_dirty;
};

/* Starts to connect. NULL: no memory. */
struct redis_node *redis_node_open(struct redis_client *client, const struct redis_host *host);

/* Queued calls are dropped without a word to their callers; the node frees itself. */
void redis_node_close(struct redis_node *node);

/* Whether calls may be queued: it is ready, or probably will be soon. */
bool redis_node_accepts(const struct redis_node *node);

/* Errors: WEIR_ERR_MEMORY. */
int redis_node_send(struct redis_node *node, struct redis_call *call, bool asking)
    __attribute__((warn_unused_result));

/* Loads a script before the next call is sent. Errors: WEIR_ERR_MEMORY. */
int redis_node_load(struct redis_node *node, const struct redis_script *script)
    __attribute__((warn_unused_result));
void redis_node_flush(struct redis_node *node);
void redis_node_tick(struct redis_node *node);

/* Sends no more, and connects anew when the calls in flight have been answered; `why` is reported
 * then. */
void redis_node_drain(struct redis_node *node, const char *why);

/* Another server has taken its place: sends no more, and closes when the calls in flight have been
 * answered. */
void redis_node_retire(struct redis_node *node);

/* Hands the calls that are not sent yet to redis_client_again. */
void redis_node_turn_away(struct redis_node *node);

/* "host:port", or the path. */
const char *redis_host_text(char out[REDIS_ADDRESS_MAX], const struct redis_client *client,
                            const struct redis_host *host);
bool redis_host_equals(const struct redis_host *a, const struct redis_host *b);

#endif
