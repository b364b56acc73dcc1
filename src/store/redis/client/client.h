/* SPDX-License-Identifier: Apache-2.0 */
/* A client of Redis or Valkey on one libuv loop: a single server, the master of a Sentinel group,
 * or a Cluster.
 *
 * A call is one command, encoded by the caller. redis_client_send only queues it;
 * redis_client_flush writes what was queued, one write a connection, so that all decisions of one
 * turn of the loop travel together. Replies come back in the order of each connection, from the
 * loop, never from inside a function of this header.
 *
 * What a call's end means. Nothing is sent twice once its bytes may have been executed:
 *   0                a reply came, perhaps an error that the caller handles (nodes[0])
 *   WEIR_ERR_STORE   certainly not executed: there was no connection, or the server refused it
 *   WEIR_ERR_IO      its bytes may have arrived, and no reply came: perhaps executed
 *
 * The client itself handles refusals that mean "not executed, but it may be tried again": NOSCRIPT
 * (it loads the script and sends the call again), MOVED and ASK (it follows them and refreshes its
 * map of slots), TRYAGAIN, CLUSTERDOWN, LOADING, BUSY, READONLY and MASTERDOWN (it looks for the
 * right server and tries again a few times, with a jittered pause, until redis_call.give_up_ns).
 * Connections that are lost come back by themselves with jittered exponential backoff, 1 s at most,
 * so that a server that has returned is used again within 2 s. A server that owes replies and is
 * silent for a second is taken for dead; an idle one gets a PING once a second.
 *
 * While a server cannot be reached, calls to it are refused (WEIR_ERR_STORE) rather than queued;
 * they are queued while it is connected to for the first time, and for the few milliseconds after a
 * good connection was lost.
 *
 * An account (ACL) needs +evalsha, +script|load, +ping and what the scripts call, on the keys of
 * the prefix; in a Cluster also +cluster|slots and +asking; +role with sentinels, where it must be
 * known that a server is a master (otherwise it is asked if allowed). +client|setname helps
 * operators.
 *
 * Memory is bounded: at most `calls_max` calls are queued or in flight, forgotten ones that are in
 * flight included; a reply larger than REDIS_REPLY_MAX closes the connection; at most
 * REDIS_MASTERS_MAX servers are known (topology.h).
 *
 * Threads: one client per loop, used on its thread alone. The process must ignore SIGPIPE, which
 * libuv's writes may raise.
 */
#ifndef WEIR_STORE_REDIS_CLIENT_CLIENT_H
#define WEIR_STORE_REDIS_CLIENT_CLIENT_H

#include <uv.h>

#include "store/redis/client/cluster_slot.h"
#include "store/redis/client/url.h"
#include "wire/resp/reply.h"
#include "wire/tls/tls.h"

#define REDIS_REPLY_MAX (16 * 1024 * 1024)
#define REDIS_SHA_HEX 40

/* A script that EVALSHA calls; static, made by the build. */
struct redis_script {
    const char *name, *text;
    size_t size;
    char sha[REDIS_SHA_HEX + 1]; /* SHA-1 of the text, lower-case hex */
};

struct redis_call;
typedef void (*redis_call_done)(struct redis_call *call, int error,
                                const struct weir_resp_node *nodes, uint32_t count);

/* Embedded by the caller, which fills the members above the line and leaves them alone until `done`
 * or redis_client_forget. */
struct redis_call {
    const char *bytes; /* one whole command in RESP (an array of bulk strings) */
    size_t size;
    const struct redis_script *script; /* whose SHA it names; NULL: none */
    uint16_t cluster_slot;             /* of its keys: redis_cluster_slot() */
    uint64_t give_up_ns; /* uv_hrtime() up to which it may wait for another try; 0: never */
    /* nodes are valid during the call only; they are NULL after an error */
    redis_call_done done;
    /* ------------------------------------------------------------------------------------- */
    struct redis_call *next, *previous; /* among those that wait */
    void *place;                        /* the server that has it in its queue; NULL: it waits */
    uint64_t due_ns;                    /* until then it waits */
    uint32_t turn;                      /* its number in the queue */
    uint8_t list, attempts;
};

enum redis_event {                 /* changes of state, each reported once, for logs and metrics */
                   REDIS_EVENT_UP, /* calls are answered again; text: the server's address */
                   REDIS_EVENT_DOWN, /* no server can be reached; text: why. Reported again when the
                                        reason changes, every 5 s at most */
                   REDIS_EVENT_FAILOVER, /* another master; text: its address */
                   REDIS_EVENT_TOPOLOGY, /* another map of slots; text: how many masters */
};

struct redis_client_options {
    uv_loop_t *loop;
    const struct redis_url *url;  /* copied */
    struct weir_tls_context *tls; /* of a URL with TLS; a reference is taken. NULL: one is made of
                                     the files that the URL names */
    const struct redis_script *const *scripts; /* loaded into every server that is connected to */
    unsigned script_count;                     /* at most 56 */
    struct weir_bytes rights; /* a command that changes nothing; who may not run it is refused at
                                 the handshake, with Redis' words. Copied; may be empty */
    uint32_t calls_max;       /* 0: 65536 */
    uint32_t connect_ms;      /* 0: 1000: connecting, TLS and the handshake together */
    uint64_t random_seed;     /* of the jitter */
    /* May be NULL. Called from the loop; it must not close the client. */
    void (*event)(void *context, enum redis_event event, const char *text);
    void *context;
};

struct redis_client;

/* Starts to connect; does not wait. Errors: WEIR_ERR_MEMORY, WEIR_ERR_IO (the loop, or TLS files
 * that cannot be read; `reason` says which). */
int redis_client_open(struct redis_client **client, const struct redis_client_options *options,
                      struct weir_reason *reason) __attribute__((warn_unused_result));

/* Ends all connections (from inside `done` too); `done` of what is in flight is not called. The
 * loop must be run on for its handles to close, which is at once unless a name is being resolved;
 * `closed` (may be NULL) is called then, and nothing of the client is left. */
void redis_client_close(struct redis_client *client, void (*closed)(void *context), void *context);

/* Connections that are made from now on use these certificates; a reference is taken. Nothing where
 * `tls` is NULL or the URL is without TLS. */
void redis_client_set_tls(struct redis_client *client, struct weir_tls_context *tls);

/* Queues a call. It leaves with redis_client_flush; from inside `done`, by itself. Errors, `done`
 * is then not called: WEIR_ERR_FULL (calls_max, or no memory for a longer queue), WEIR_ERR_STORE
 * (no server known for the slot, or it cannot be reached). */
int redis_client_send(struct redis_client *client, struct redis_call *call)
    __attribute__((warn_unused_result));
void redis_client_flush(struct redis_client *client);

/* The caller wants no answer: `done` is never called, call and bytes are the caller's again.
 * Returns whether it is certain that it was not executed (its bytes were not yet written). */
bool redis_client_forget(struct redis_client *client, struct redis_call *call);

struct redis_client_counters {
    uint64_t redirects; /* MOVED and ASK */
    uint64_t retries;   /* calls that had to wait for another try */
    uint64_t reloads;   /* scripts sent again after NOSCRIPT */
    uint64_t connects;  /* connections whose handshake was done */
    uint64_t refreshes; /* maps of slots read, and answers of sentinels */
};
const struct redis_client_counters *redis_client_counters(const struct redis_client *client);

/* Whether a server of the slot is connected and has finished its handshake. */
bool redis_client_ready(const struct redis_client *client, uint16_t slot);
/* Whether it is a Cluster, so that all keys of a call must have one slot. */
bool redis_client_is_cluster(const struct redis_client *client);

#endif
