/* SPDX-License-Identifier: Apache-2.0 */
/* A worker with an HTTP listener and one with the admin listener, as a daemon has them, without the
 * network: requests go in and replies come out through a pair of sockets of the test's own. Parser,
 * routing, handlers, engine and table are the real ones. */
#ifndef TESTS_HTTP_HARNESS_H
#define TESTS_HTTP_HARNESS_H

#include "server/daemon/daemon.h"
#include "server/daemon/worker_state.h"

#define HTTP_HARNESS_TEXT (1 << 20)
#define HTTP_HARNESS_LIMITS 24 /* distinct limits that requests may bring */

struct http_harness {
    struct weir_daemon daemon; /* what handlers of the admin listener look at */
    struct weir_worker *decides;
    struct weir_worker *worker; /* that the connection is of, and its listener */
    struct weir_listener *listener;
    struct weir_connection *connection; /* freed once `closed` */
    struct weir_connection_pool pools[2];
    struct weir_endpoint endpoints[2];
    int client;

    bool closed;        /* the connection has ended */
    unsigned status;    /* of the last reply */
    const char *fields; /* its header lines, each with CRLF */
    const char *body;   /* ends with a NUL */
    size_t body_size;
    char raw[HTTP_HARNESS_TEXT + 1]; /* what has been received and not looked at */
    size_t raw_size;
    char reply[HTTP_HARNESS_TEXT + 1];
};

/* `rules`: the text of a rules file; NULL: no limits. `kind`, WEIR_LISTENER_HTTP or _ADMIN, says to
 * which listener it is connected. The peer is a Unix socket. Never fails: a test without memory
 * ends here. */
struct http_harness *http_harness_open(const char *rules, enum weir_listener_kind kind);

/* Checks that no decision and no buffer is left. */
void http_harness_close(struct http_harness *harness);

/* A new connection in place of the old one; to the other listener, or the same. */
void http_harness_connect_to(struct http_harness *harness, enum weir_listener_kind kind);
void http_harness_connect(struct http_harness *harness);

/* The peer of the connection is this address from now on, by TCP. */
void http_harness_come_from(struct http_harness *harness, const char *address);

/* Sends bytes as they are, and lets the worker do what it can. */
void http_harness_send(struct http_harness *harness, const char *data, size_t size);

/* Takes the next reply. Returns its status; 0: none has come. `head`: the request was HEAD. */
unsigned http_harness_reply(struct http_harness *harness, bool head);

/* Sends a request, on a new connection where the old one has ended, and takes its reply. `fields`:
 * lines with CRLF, or NULL; `body`: NULL for none. Returns the status. */
unsigned http_harness_ask(struct http_harness *harness, const char *method, const char *target,
                          const char *fields, const char *body);
unsigned http_harness_get(struct http_harness *harness, const char *target);
unsigned http_harness_post(struct http_harness *harness, const char *target, const char *body);

/* Whether the last reply has this header line: "Cache-Control: no-store". */
bool http_harness_has(const struct http_harness *harness, const char *line);

/* Whether the last reply's body holds this text. */
bool http_harness_says(const struct http_harness *harness, const char *text);

#endif
