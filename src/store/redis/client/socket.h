/* SPDX-License-Identifier: Apache-2.0 */
/* An open stream to a host's name, an address, or the path of a Unix socket.
 *
 * A name is resolved on libuv's threads, then its addresses are tried in turn. Nothing is timed
 * here: a caller that does not want to wait longer closes.
 *
 * Threads: that of its loop.
 */
#ifndef WEIR_STORE_REDIS_CLIENT_SOCKET_H
#define WEIR_STORE_REDIS_CLIENT_SOCKET_H

#include <uv.h>

#include "store/redis/client/url.h"

#define REDIS_ADDRESSES_MAX 8 /* of a name; those beyond are not tried */

struct redis_socket {
    union {
        uv_handle_t handle;
        uv_stream_t stream; /* stream.data: the socket */
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    };
    uv_loop_t *loop;
    uv_getaddrinfo_t resolve;
    uv_connect_t connect;
    struct sockaddr_storage addresses[REDIS_ADDRESSES_MAX];
    uint32_t address_count, tried, first;
    uint8_t parts;  /* handles and requests that libuv still knows */
    bool resolving; /* or else connecting, or connected */
    bool lives;     /* the handle is initialized and not closing */
    bool ended;
    /* Connected (status 0), or why not; once at most, never from inside redis_socket_open. */
    void (*connected)(struct redis_socket *socket, int status);
    /* libuv knows nothing of the socket any more; once, after redis_socket_close, never from inside
     * of it. Not called when nothing was there to close: see its result. */
    void (*gone)(struct redis_socket *socket);
};

/* Starts; loop, connected and gone are set. `host` or `path` (with host NULL); `first` is the
 * address to begin with, modulo their number. Returns 0 or an error of libuv. */
int redis_socket_open(struct redis_socket *socket, const struct redis_host *host, const char *path,
                      uint32_t first) __attribute__((warn_unused_result));

/* Returns whether `gone` will be called. */
bool redis_socket_close(struct redis_socket *socket);

#endif
