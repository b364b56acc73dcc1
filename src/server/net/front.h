/* SPDX-License-Identifier: Apache-2.0 */
/* A front end: one protocol over the shared connection.
 *
 *     bytes ─▶ connection ─▶ front->parse ─▶ slots + decisions ─▶ engine, end of turn
 *     bytes ◀─ connection ◀─ slot->write  ◀─ slots in order    ◀─ done, now or later
 *
 * The connection (connection.h) owns sockets, buffers, timeouts, back-pressure, the PROXY protocol
 * and the order of replies. A front end only turns bytes into slots, and a slot whose decisions are
 * done back into bytes. One slot is one reply; slots of a connection are written in the order in
 * which they were made, whenever their decisions finish.
 *
 * To add a listener: fill one struct weir_front, and name it in `fronts` of a service
 * (server/service.h). Its address, its token and its TLS are read from the settings where it says.
 */
#ifndef WEIR_SERVER_NET_FRONT_H
#define WEIR_SERVER_NET_FRONT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/check.h"
#include "server/daemon/limits.h"
#include "server/net/buffers.h"

struct weir_connection;
struct weir_daemon;
struct weir_settings;
struct weir_slot;
struct weir_worker;

/* The most that one slot->write may append to an output at once: 22 KiB of rate-limit headers,
 * 75 KiB of JSON with a denial in it, and a head (http/reply.h checks it). Longer replies go
 * through weir_connection_send. */
#define WEIR_REPLY_MAX (112 * 1024)

/* Bytes on their way to one connection: the worker's, reused for each. */
struct weir_output {
    char *data;
    size_t used, size;
};

/* Why a connection is cut before its request was understood. */
enum weir_cut {
    WEIR_CUT_TIMEOUT,   /* a begun request was not finished in time */
    WEIR_CUT_BUSY,      /* no connection or no buffer is left */
    WEIR_CUT_TOO_LARGE, /* an unfinished request is longer than front->request_max */
};

/* What requests of a listener are counted as. */
enum weir_listener_kind {
    WEIR_LISTENER_HTTP,
    WEIR_LISTENER_REDIS,
    WEIR_LISTENER_GRPC,
    WEIR_LISTENER_ADMIN, /* it has one socket, in the admin worker; the others one a worker */
    WEIR_LISTENER_CHALLENGE,
    WEIR_LISTENER_KINDS
};

/* Front ends of a server. */
#define WEIR_FRONTS_MAX 8

struct weir_front {
    const char *name;   /* in logs and metrics */
    size_t request_max; /* bytes of one unfinished request */
    uint32_t idle_ms;   /* nothing begun, nothing owed: closed; 0: WEIR_IDLE_MS */
    enum weir_listener_kind kind;
    bool http; /* its workspace is a struct weir_http */

    /* --- Where it listens -------------------------------------------------------------------- */

    const char *setting;   /* what names the address in errors: "server.http" */
    size_t settings;       /* of the struct weir_listener_settings in struct weir_settings */
    size_t option;         /* of the address in struct weir_server_options, which comes first; 0:
                              the command line has none */
    const char *otherwise; /* the address without one; NULL: it does not listen */
    bool anybody;          /* may call, wherever it listens */
    const char *protocol;  /* in TLS (ALPN); NULL: none */
    /* The address, where it is none of its settings; "off": none. Else NULL. */
    const char *(*address)(const struct weir_daemon *daemon, const struct weir_settings *settings);
    void *(*server)(struct weir_daemon *daemon); /* what `open` gets; NULL: the daemon */

    /* --- What it does ------------------------------------------------------------------------ */

    /* What the front end needs for each listener of each worker: made once, handed out as
     * weir_connection_workspace. NULL: no memory. */
    void *(*open)(struct weir_worker *worker, void *server);
    void (*close)(void *workspace);

    /* Takes one request from data[0..size), size > 0. Returns the bytes taken (> 0), 0 when more
     * are needed, or -1: nothing more is read from this connection, and it is closed when its slots
     * are written. At least WEIR_BATCH_MAX decisions can be taken while it runs. */
    long (*parse)(struct weir_connection *connection, char *data, size_t size);

    /* The last words on a connection that is cut. */
    void (*cut)(struct weir_connection *connection, enum weir_cut why, struct weir_output *output);

    /* --- What only a protocol needs that carries many requests side by side (HTTP/2); else NULL,
     * and the connection does it -------------------------------------------------------------- */

    /* A reply is written when it is ready, whatever was asked before it. */
    bool unordered;

    /* Before a connection's first bytes. False: no memory, it is closed. */
    bool (*begin)(struct weir_connection *connection);
    /* It is being closed: gives back what front_state holds, decisions and slots included. */
    void (*end)(struct weir_connection *connection);

    /* At the end of a turn, when the slots that are ready have been written: appends what else
     * there is to say, through weir_connection_send where it is more than `output` has room for.
     * False: nothing will ever be said or heard again. */
    bool (*flush)(struct weir_connection *connection, struct weir_output *output);

    /* Decisions can be taken again, after weir_connection_pause said that none could. */
    void (*resume)(struct weir_connection *connection);

    /* When expire is to be called, as far as the protocol knows; both on the clock of the loop. */
    uint64_t (*deadline_ms)(struct weir_connection *connection, uint64_t now_ms);
    void (*expire)(struct weir_connection *connection, uint64_t now_ms);

    /* The worker is shutting down. */
    void (*drain)(struct weir_connection *connection);

    /* Once a tick of the wheel, for the workspace. */
    void (*tick)(void *workspace);
};

/* The room that a front end has in each connection for its parser. */
#define WEIR_FRONT_STATE_BYTES 192

/* One reply. `write` gives back the slot's decisions and buffer. */
struct weir_slot {
    struct weir_slot *next;
    struct weir_connection *connection;
    void (*write)(struct weir_slot *slot, struct weir_output *output);
    void (*drop)(struct weir_slot *slot);  /* instead of `write`, where the connection goes first:
                                              gives back what only the front end knows; or NULL */
    bool (*again)(struct weir_slot *slot); /* all that it waited for is done: whether it waits for
                                              more; or NULL */
    void (*more)(struct weir_slot *slot);  /* the next piece of its request: weir_slot_begin */
    void *owner;                           /* the front end's */
    struct weir_decision *decision;        /* where it needs one */
    struct weir_buffer *buffer;            /* a finished reply, or an array of decisions */
    uint64_t outcome;                      /* of a report: see http/report_api.c */
    uint32_t waiting;                      /* decisions that are not done */
    uint32_t count;                        /* of decisions in the buffer */
    uint32_t weight;                       /* see WEIR_OWED_MAX */
    uint32_t place;         /* of a reservation: see feature/reserve/server/reserve.h; of /v1/auth
                               the client's prefix: see net/holds.h */
    uint16_t detail, flags; /* the front end's */
};

#endif
