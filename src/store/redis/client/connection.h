/* SPDX-License-Identifier: Apache-2.0 */
/* One connection to a server that speaks the Redis protocol: from its address to replies.
 *
 *   resolve ──▶ connect (each address in turn) ──▶ TLS ──▶ opened ──▶ replied… ──▶ lost ──▶ gone
 *
 * It is used once: another connection is another object. Its owner writes whole commands into its
 * output and sends them together; replies are parsed in place. It knows nothing of commands.
 *
 * An error of the peer (not the Redis protocol, an unexpected push message, a reply over
 * REDIS_REPLY_MAX) ends the connection, with a text that names it.
 *
 * Memory: a reader (reply_reader.h), and 16 KB of output, grown as needed to 256 KB or the longest
 * command. Nothing is allocated in steady state. A name's resolution runs on libuv's threads, and
 * cannot always be cancelled: then `gone` waits for it.
 *
 * Threads: that of its loop.
 */
#ifndef WEIR_STORE_REDIS_CLIENT_CONNECTION_H
#define WEIR_STORE_REDIS_CLIENT_CONNECTION_H

#include "store/redis/client/client.h"
#include "wire/tls/tls.h"

struct redis_connection;

/* All are called from the loop, never from inside a function of this header. */
struct redis_connection_handlers {
    void (*opened)(void *owner); /* commands may be written */
    /* One reply; valid during the call. */
    void (*replied)(void *owner, const struct weir_resp_node *nodes, uint32_t count);
    void (*paused)(void *owner);                /* all replies that have come were given */
    void (*writable)(void *owner);              /* there is room again, after there was none */
    void (*lost)(void *owner, const char *why); /* it has ended by itself; only `gone` follows */
    void (*gone)(void *owner);                  /* nothing refers to the owner any more */
};

struct redis_connection_options {
    uv_loop_t *loop;
    const char *path;              /* of a Unix socket; with host NULL */
    const struct redis_host *host; /* read by redis_connection_open only */
    uint32_t first;                /* which of its addresses to try first, modulo their number */
    uint32_t open_ms;              /* until redis_connection_settle, or it is lost */
    struct weir_tls_context *tls;  /* NULL: none */
    const char *server_name;       /* of its certificate; NULL: the host's; read at once */
    const struct redis_connection_handlers *handlers;
    void *owner;
};

/* Errors: WEIR_ERR_MEMORY, WEIR_ERR_IO. */
int redis_connection_open(struct redis_connection **connection,
                          const struct redis_connection_options *options)
    __attribute__((warn_unused_result));

/* No handler but `gone` is called any more. */
void redis_connection_close(struct redis_connection *connection);

/* The handshake is done: stops its timer. */
void redis_connection_settle(struct redis_connection *connection);

/* Ends it as if the peer had: `lost` will be called. */
void redis_connection_fail(struct redis_connection *connection, const char *why);

/* Room for a command of `size` bytes, to be filled and then counted by redis_connection_put; NULL:
 * flush first, or if that does not help, wait for `writable` (or `lost`). */
char *redis_connection_room(struct redis_connection *connection, size_t size);
void redis_connection_put(struct redis_connection *connection, size_t size);
void redis_connection_flush(struct redis_connection *connection);

#endif
