/* SPDX-License-Identifier: Apache-2.0 */
/* The sticky store: a key's states are in the table of one node of a fleet, its home, and every
 * other node asks that one.
 *
 *   submit ──▶ home of the decision's tag ──▶ itself: its table, at once
 *                                        └──▶ a peer: WEIR.DECIDE over the peer's Redis port
 *   done   ◀── answer (peer_message.h) ◀──────────┘
 *
 * The home. Checks that count for the whole fleet have a tag (weir_check.tag), and all of one
 * decision have the same; a decision without one is decided by this node's table. All of a decision
 * goes to one home and is one atomic decision there; what in it has no tag is counted there too.
 *
 * The node that is asked decides by its own table (sticky_decide), whatever it takes for the home,
 * so nothing is passed on twice and there are no loops.
 *
 * A decision is sent at most once. It fails with WEIR_ERR_STORE where it was certainly not decided
 * (no connection, the breaker is open, no memory), or where the answer says that the peer cannot
 * decide it or is no answer; with WEIR_ERR_IO where the connection was lost after it was sent.
 * Deadlines are the caller's (cancel). Each peer has a breaker (../redis/breaker.h); a decision
 * that comes when a probe is due is the probe.
 *
 * Connections are those of redis/client: TLS, passwords, reconnects, PING, and its bound on the
 * size of replies. Decisions of one turn of the loop travel in one write.
 *
 * The list of nodes may change while the store runs (weir_store_sticky_set_peers). A peer that
 * leaves is sent nothing more; its connection closes when all that was sent to it has an answer or
 * was given up.
 *
 * Memory: at most 32 MiB of calls a worker, taken as needed and kept. Threads: one store per loop,
 * used on its thread only, except prepare and the stats.
 */
#ifndef WEIR_FEATURE_STICKY_STORE_STICKY_H
#define WEIR_FEATURE_STICKY_STORE_STICKY_H

#include <stdatomic.h>
#include <uv.h>

#include "feature/sticky/store/peer_message.h"
#include "store/redis/client/url.h"
#include "store/store.h"
#include "wire/tls/tls.h"

#define STICKY_PEERS_MAX 16

/* Of one peer; written by the worker only, read by any thread. */
struct sticky_peer_stats {
    _Atomic uint64_t up;                    /* 1: connected and its breaker is closed */
    _Atomic uint64_t calls;                 /* decisions sent */
    _Atomic uint64_t errors;                /* answers that decided nothing, and lost connections */
    _Atomic uint64_t timeouts;              /* no answer by the deadline */
    _Atomic uint64_t refused;               /* not sent: not connected, or its breaker is open */
    _Atomic uint64_t answered, answered_ns; /* answers, and how long they took together */
};

#define STICKY_NEW UINT32_MAX

/* A node of the fleet. */
struct sticky_peer {
    const struct redis_url *url;     /* copied; NULL: this node, without the rest */
    struct sticky_peer_stats *stats; /* the caller's, valid until `gone` */
    void *owner;                     /* for the callbacks; not NULL */
    /* Of a changed list: the number that the peer had, whose connection, breaker, stats and owner
     * it keeps; or STICKY_NEW. */
    uint32_t from;
};

struct sticky_options {
    uv_loop_t *loop;
    struct weir_store *table;        /* this node's states; borrowed */
    const uint64_t *table_secret;    /* two words, borrowed: hashes of states are made with them */
    const struct sticky_peer *peers; /* each node of the fleet, copied; all of them new */
    uint32_t peer_count;             /* 1 to STICKY_PEERS_MAX */
    struct weir_tls_context *tls;    /* of URLs with TLS; a reference is taken. NULL: each client
                                        makes its own of the files that its URL names */
    uint64_t random_seed;            /* of jitter */
    /* The number of the peer that is home of a tag. */
    uint32_t (*home)(void *context, uint64_t tag);
    /* A peer is reached (`up`), or not any more; `text`: its address, or why. Each change once. */
    void (*event)(void *context, void *owner, bool up, const char *text);
    /* A peer has answered that it cannot decide, one a second and peer at most; or nonsense. */
    void (*refused)(void *context, void *owner, const char *text);
    /* A peer that has left, or whose store was closed, is no longer used; NULL: nobody asks. From
     * the loop. */
    void (*gone)(void *context, void *owner);
    void *context;
};

/* Errors: WEIR_ERR_MEMORY, WEIR_ERR_IO (the loop, or TLS files that cannot be read: `reason`). The
 * loop must be run once more then, for handles to close; `gone` is not called. */
int weir_store_sticky_open(struct weir_store **store, const struct sticky_options *options,
                           struct weir_reason *reason) __attribute__((warn_unused_result));

/* Another list of nodes, from the next decision on: `home` numbers this one. Connections that are
 * kept use `tls` (may be NULL) when they are recreated. Errors: as weir_store_sticky_open; then the
 * list is as it was, and `gone` is not called. */
int weir_store_sticky_set_peers(struct weir_store *store, const struct sticky_peer *peers,
                                uint32_t peer_count, struct weir_tls_context *tls,
                                struct weir_reason *reason) __attribute__((warn_unused_result));

/* Closes it; `closed` (may be NULL) is called when all its handles are. Instead of ops->close,
 * where the loop still runs. */
void weir_store_sticky_shutdown(struct weir_store *store, void (*closed)(void *context),
                                void *context);

/* Finds the limit of a check that was read: with these numbers, and known to the table. It may be
 * read->made, which is valid until the decision is made. Returns 0 or an error, with why in
 * `reason`. */
typedef int (*sticky_find_limit)(void *context, struct sticky_check *read,
                                 const struct weir_limit **limit, struct weir_reason *reason);

/* Decides a message by this node's `table`, at once, and writes the answer to `out`, which has room
 * for STICKY_ANSWER_MAX bytes. `secret` is the table's. Returns the size (above 0). Errors:
 * WEIR_ERR_SYNTAX (no message), those of `find`, WEIR_ERR_BUSY; `reason` has the text. */
long sticky_decide(struct weir_store *table, const uint64_t secret[2], struct weir_bytes message,
                   uint64_t now_ns, sticky_find_limit find, void *context, char *out,
                   struct weir_reason *reason) __attribute__((warn_unused_result));

#endif
