/* SPDX-License-Identifier: Apache-2.0 */
/* The server that a load is for: where it is, what it speaks, and how a connection starts.
 *
 *   redis://HOST[:PORT]      Redis protocol over TCP, port 6380 by default (weir's)
 *   http://HOST[:PORT]       HTTP/1.1 over TCP, port 8080 by default
 *   unix:/PATH               Redis protocol over a Unix socket
 *   http+unix:/PATH          HTTP/1.1 over a Unix socket
 *
 * Immutable once resolved; used by all threads.
 */
#ifndef WEIR_CLI_BENCH_TARGET_H
#define WEIR_CLI_BENCH_TARGET_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <weir/error.h>

#include "cli/bench/reply.h"

#define BENCH_HOST_MAX 256 /* a domain name, with its NUL */
/* Connecting, and each answer of a log-in: a server that takes longer is not up. */
#define BENCH_CONNECT_TIMEOUT_S 5

struct bench_target {
    enum bench_protocol protocol;
    char host[BENCH_HOST_MAX + 8]; /* for the Host field: with the port */
    socklen_t size;
    union {
        struct sockaddr any;
        struct sockaddr_storage inet;
        struct sockaddr_un un;
    };
};

/* Reads a target and resolves its host's name.
 * Errors, with `reason`: WEIR_ERR_SYNTAX, WEIR_ERR_NOT_FOUND (no such host). */
int bench_target_parse(struct bench_target *target, const char *text, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* Connects, and in the Redis protocol logs in if there is a `password` (or NULL) and changes to
 * RESP3 if wanted. Returns a socket that does not block and sends at once, or WEIR_ERR_IO with
 * `reason`. */
int bench_target_connect(const struct bench_target *target, const char *password, bool resp3,
                         struct weir_reason *reason) __attribute__((warn_unused_result));

#endif
