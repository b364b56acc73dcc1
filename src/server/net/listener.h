/* SPDX-License-Identifier: Apache-2.0 */
/* Where the server listens: addresses of the configuration, sockets, who may come.
 *
 * TCP: every worker has a socket of its own on the same port (SO_REUSEPORT), so that the kernel
 * spreads connections and no thread hands work to another. All are bound by the main thread before
 * anything starts; a port that another program has is found by a first bind without SO_REUSEPORT,
 * which would otherwise share the port with it in silence. Unix sockets: one socket, duplicated for
 * each worker; a path that no process listens on is taken over.
 */
#ifndef WEIR_SERVER_NET_LISTENER_H
#define WEIR_SERVER_NET_LISTENER_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <uv.h>

#include <weir/error.h>

#include "rules/rules.h"
#include "server/daemon/limits.h"
#include "server/net/front.h"
#include "server/net/holds.h"
#include "server/net/peers.h"

enum weir_endpoint_kind { WEIR_ENDPOINT_OFF, WEIR_ENDPOINT_TCP, WEIR_ENDPOINT_UNIX };

struct weir_endpoint {
    enum weir_endpoint_kind kind;
    bool local; /* loopback or a Unix socket */
    socklen_t size;
    union {
        struct sockaddr any;
        struct sockaddr_in in;
        struct sockaddr_in6 in6;
        struct sockaddr_un un;
    };
};

/* "off", "127.0.0.1:8080", "[::1]:8080", "localhost:8080" (127.0.0.1), "*:8080" (all, IPv6 and
 * IPv4), "unix:/path". Errors: WEIR_ERR_SYNTAX. */
int weir_endpoint_parse(struct weir_endpoint *endpoint, const char *text,
                        struct weir_reason *reason) __attribute__((warn_unused_result));

/* Makes `count` bound sockets, not yet listening: fds[0..count). Port 0 becomes one free port, the
 * same for all. On return the endpoint holds the real port. Errors: WEIR_ERR_IO. */
int weir_endpoint_bind(struct weir_endpoint *endpoint, int *fds, unsigned count,
                       struct weir_reason *reason) __attribute__((warn_unused_result));

/* The address as it is written in the configuration. */
#define WEIR_ENDPOINT_TEXT_MAX 128
void weir_endpoint_format(const struct weir_endpoint *endpoint, char text[WEIR_ENDPOINT_TEXT_MAX]);

/* Whether two bound endpoints would have connections in common: the same port of one address, or of
 * all. The kernel doesn't say, since all these sockets are shared (SO_REUSEPORT) and none listens
 * yet. */
bool weir_endpoint_overlap(const struct weir_endpoint *a, const struct weir_endpoint *b);

/* Whether both are the same address, port or path. */
bool weir_endpoint_same(const struct weir_endpoint *a, const struct weir_endpoint *b);

/* Gives a listening socket that another process has made what weir_endpoint_bind gives its own. */
void weir_endpoint_prepare(int fd, const struct weir_endpoint *endpoint);

/* Removes a Unix socket's path. */
void weir_endpoint_remove(const struct weir_endpoint *endpoint);

/* The connections of one listener, over all workers: its own, so that a full one does not close
 * another. */
struct weir_connection_pool {
    uint32_t max;      /* that are served */
    uint32_t refusals; /* those beyond, which are answered 503; still more are closed at once */
    _Atomic uint32_t open;
    _Atomic uint64_t refused;
    _Atomic uint64_t paused;                      /* times that the system had no file for one */
    _Atomic uint64_t limited[WEIR_PEER_VERDICTS]; /* refused by `server.connections` */
    /* When that was logged last; 0: never. */
    _Atomic uint64_t full_ms, paused_ms, limited_ms;
    struct weir_hold_places held; /* replies that are held back */
};

/* One listening socket of one worker. */
struct weir_listener {
    uv_poll_t poll;
    int fd;
    struct weir_worker *worker;
    const struct weir_front *front;
    struct weir_connection_pool *pool;
    void *workspace;
    enum weir_listener_kind kind;
    bool unix_socket, local;
    _Atomic uint64_t wrong_guesses, refused_guesses; /* of passwords and tokens */
    bool open;                                       /* its handle is */
    bool paused; /* the system had no file left for a connection; nothing is accepted */
};

/* Listens on a bound socket, which becomes the listener's. Errors: WEIR_ERR_IO. */
int weir_listener_open(struct weir_listener *listener, uv_loop_t *loop, int fd,
                       struct weir_reason *reason) __attribute__((warn_unused_result));

/* Continues accepting where it had paused; called once a tick. */
void weir_listener_retry(struct weir_listener *listener);

/* Counts a connection of a client for its address (server.connections). False: its address or its
 * prefix has too many, or it came too often; the caller closes it. Trusted proxies, peers of Unix
 * sockets and clients of the admin listener may have any number. */
bool weir_listener_admits(struct weir_listener *listener, const struct weir_address *peer,
                          struct weir_peer_places *places);

/* Accepts what still waits, then closes the socket. */
void weir_listener_close(struct weir_listener *listener);

/* The settings that stand for it in the present rules. */
const struct weir_listener_settings *weir_listener_settings(const struct weir_listener *listener);

/* Whether callers may say who a request is from (`attributes`: user, org, plan). */
bool weir_listener_trusts(const struct weir_listener *listener);

#endif
