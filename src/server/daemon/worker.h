/* SPDX-License-Identifier: Apache-2.0 */
/* A worker: one thread, one loop, its sockets, its engine.
 *
 * A turn of the loop. libuv polls, and every socket that is ready is read and parsed; decisions
 * pile up in the engine. Then the check handle runs the turn: the clock is read once, the engine
 * decides all as one batch, and every connection that has a reply ready gets one write. Nothing
 * waits for a later turn, and nothing is handed to another thread.
 *
 * Other threads talk to a worker through weir_worker_set_rules and weir_worker_drain only, and read
 * its counters.
 *
 * Memory: fixed except for connections (as many as the pools of its listeners allow) and their
 * buffers (net/buffers.h). Connections and slots come from free lists; in a steady state nothing is
 * allocated.
 */
#ifndef WEIR_SERVER_DAEMON_WORKER_H
#define WEIR_SERVER_DAEMON_WORKER_H

#include <stdatomic.h>
#include <uv.h>

#include "engine/callbacks.h"
#include "engine/engine.h"
#include "feature/use/engine/cause.h"
#include "rules/counter.h"
#include "server/daemon/log.h"
#include "server/net/buffers.h"
#include "server/net/connection.h"
#include "server/net/listener.h"
#include "wire/http/forwarded.h"

struct weir_certificates;
struct weir_controllers;
struct weir_directories;
struct weir_distinct_set;
struct weir_guesses;
struct weir_lenders;
struct weir_overlooked;
struct weir_peers;
struct weir_reservations;
struct weir_shared_store;
struct weir_sticky_peers;
struct weir_table;
struct weir_tls_context;

/* Bounds of the histogram of how long a turn takes to decide and answer, in us; one more bucket is
 * open. */
#define WEIR_TURN_BUCKETS 9
extern const uint32_t weir_turn_bounds_us[WEIR_TURN_BUCKETS];

/* Written by the worker alone, read by anyone: each value is some moment's. */
struct weir_worker_counters {
    _Atomic uint64_t connections, accepted, refused, timeouts, protocol_errors, tls_errors;
    _Atomic uint64_t turns, turn_ns, turn_buckets[WEIR_TURN_BUCKETS + 1];
    /* Requests, WEIR_OP_DECIDE: what looks, gives back or ends a lease is none. */
    _Atomic uint64_t decisions;                     /* queued in the engine */
    _Atomic uint64_t by_front[WEIR_LISTENER_KINDS]; /* decided, by the listener they came from */
    _Atomic uint64_t denied_by[WEIR_CAUSES];        /* of these, by the cause */
    _Atomic uint64_t
        front_turns[WEIR_LISTENER_KINDS][WEIR_TURN_BUCKETS + 1]; /* turns that have
                                                                     decided any of it */
    _Atomic uint64_t front_turn_ns[WEIR_LISTENER_KINDS];
};

/* A client's request that could not be read, so that no decision was taken for it: it counts as
 * refused, too. */
static inline void weir_count_unread(struct weir_worker_counters *counters, unsigned listener_kind)
{
    weir_count(&counters->by_front[listener_kind], 1);
    weir_count(&counters->denied_by[WEIR_CAUSE_UNREADABLE], 1);
}

/* What connections and front ends read of their worker. Only the worker writes it; buffers and the
 * output are lent. All else is private (worker_state.h) and is changed by the functions below. */
struct weir_worker {
    unsigned index;
    bool draining;     /* it finishes what is begun and accepts nothing new */
    bool remote_store; /* `store` is one that nodes share */
    struct weir_log *log;
    struct weir_table *table;
    struct weir_engine *engine;
    struct weir_store *store;
    struct weir_store *local; /* the table beside a shared store; beside a table in a file: its
                                 spare; NULL: none */
    struct weir_reservations *reservations; /* of all workers; NULL: none can be made */
    struct weir_guesses *guesses;       /* of all workers; NULL: addresses are not distinguished */
    struct weir_overlooked *overlooked; /* of all workers; NULL: it is not counted */
    struct weir_peers *peers; /* of all workers; NULL: connections are not counted by address */
    struct weir_controllers *controllers; /* of all workers; NULL: nothing learns from outcomes */
    uv_loop_t *loop;
    uint64_t patience_ns;    /* how long a decision may take by itself */
    uint64_t now_ns, wall_s; /* of the last turn */
    struct weir_buffers buffers;
    struct weir_output output; /* for what is written to one connection */
    char *read_buffer;         /* WEIR_READ_BYTES */
    struct weir_worker_counters counters;
};

struct weir_worker_options {
    unsigned index;
    struct weir_log *log;
    struct weir_table *table;
    struct weir_table *spare;         /* of `table`, for on_store_error: local; NULL: none */
    struct weir_store *store;         /* closed with the worker; NULL: one on the table */
    struct weir_shared_store *shared; /* instead: the store that nodes share, with the table beside
                                         it; NULL: none */
    struct weir_sticky_peers *sticky; /* instead: the other nodes of the fleet; NULL: none */
    struct weir_rules *rules;         /* prepared for the store */
    struct weir_certificates *certificates; /* one reference is taken; NULL: none */
    uint32_t decisions;                     /* 0: WEIR_DECISIONS */
    uint64_t deadline_ns; /* of a decision that the store has not made; 0: the engine's */
    uint64_t lease_seed;
    struct weir_lenders *lenders;           /* of other regions; NULL: none lends */
    struct weir_reservations *reservations; /* shared by all workers; borrowed; NULL: none */
    struct weir_guesses *guesses;           /* likewise */
    struct weir_overlooked *overlooked;     /* likewise */
    struct weir_peers *peers;               /* likewise */
    struct weir_controllers *controllers;   /* likewise */
    struct weir_directories *directories;   /* likewise */
    const struct weir_standing *standing;   /* likewise; NULL: all callers are good */
    weir_engine_warn warn;                  /* where warnings go; NULL: nowhere */
    void *warn_context;
    weir_engine_strike strike; /* where strikes go; NULL: nothing is one */
    void *strike_context;
    weir_engine_observe observe; /* who sees what was decided; NULL: nobody */
    void *observe_context;
    _Atomic(struct weir_distinct_set *) *distinct; /* where keys are counted; NULL: nowhere */
};

/* Opens the loop, the stores and the engine. Errors: WEIR_ERR_MEMORY, WEIR_ERR_IO, WEIR_ERR_FULL;
 * `reason` says more of those of a store that nodes share. */
int weir_worker_open(struct weir_worker **worker, const struct weir_worker_options *options,
                     struct weir_reason *reason) __attribute__((warn_unused_result));

/* What all sockets of one listener have in common; all but `pool` and `server` is copied. */
struct weir_listening {
    const struct weir_front *front;
    const struct weir_endpoint *endpoint;
    struct weir_connection_pool *pool; /* shared by all workers */
    void *server;                      /* for front->open */
};

/* Listens on a bound socket. Errors: WEIR_ERR_IO, WEIR_ERR_MEMORY; the socket is closed then. */
int weir_worker_listen(struct weir_worker *worker, const struct weir_listening *listening, int fd,
                       struct weir_reason *reason) __attribute__((warn_unused_result));

/* Runs until it is drained: until every connection is closed after weir_worker_drain, and what the
 * worker held of a store that nodes share is handed back. */
void weir_worker_run(struct weir_worker *worker);

/* Closes what is left, then frees all. The thread that ran it has ended. NULL is ignored. */
void weir_worker_close(struct weir_worker *worker);

/* --- From other threads ------------------------------------------------------------------------
 */

/* Whether its loop has had a tick since this was called last with `anew`. */
bool weir_worker_alive(struct weir_worker *worker, bool anew);

/* Hands over new rules (takes one reference), under which comes all that the worker reads from now
 * on. */
void weir_worker_set_rules(struct weir_worker *worker, struct weir_rules *rules);

/* Hands over new certificates, for connections accepted from the next turn on. */
void weir_worker_set_certificates(struct weir_worker *worker,
                                  struct weir_certificates *certificates);

/* Stops accepting; finishes what is begun; then weir_worker_run returns. */
void weir_worker_drain(struct weir_worker *worker);

/* Ends weir_worker_run at once, whatever is in flight. */
void weir_worker_stop(struct weir_worker *worker);

/* Has the worker drop the callers that its directory is to forget. */
void weir_worker_wake(struct weir_worker *worker);

/* Its listeners, numbered from 0, as they were opened; NULL: no more. */
const struct weir_listener *weir_worker_listener(const struct weir_worker *worker, unsigned i);

/* --- For connections and front ends, on the worker's thread ------------------------------------
 */

/* Takes the rules that another thread has handed over, if any. What is read afterwards comes under
 * them, also if the wake for them is still to come. */
void weir_worker_renew(struct weir_worker *worker);

struct weir_rules *weir_worker_rules(const struct weir_worker *worker);
const struct weir_settings *weir_worker_settings(const struct weir_worker *worker);

struct weir_proxies weir_worker_proxies(const struct weir_worker *worker);

/* Whether a peer is one of the trusted proxies (family 0: a Unix socket). */
bool weir_worker_trusts(const struct weir_worker *worker, const struct weir_address *peer);

/* Whether WEIR_BATCH_MAX decisions can be taken; decides what is queued to make room. */
bool weir_worker_has_room(struct weir_worker *worker);

/* Never NULL after weir_worker_has_room, for WEIR_BATCH_MAX of them. */
struct weir_decision *weir_worker_take(struct weir_worker *worker);
void weir_worker_give(struct weir_worker *worker, struct weir_decision *decision);

/* Queues a decision in the engine, for the end of this turn. */
void weir_worker_queue(struct weir_worker *worker, struct weir_decision *decision);
/* Gives back a decision, whatever became of it; one that is not done is cancelled. */
void weir_worker_cancel(struct weir_worker *worker, struct weir_decision *decision);
/* Has the engine run at the end of this turn, also without a queued decision: leases may have to
 * end. */
void weir_worker_run_engine(struct weir_worker *worker);

/* So many taken decisions wait for the lookup of a caller, and others may be gathered meanwhile;
 * and they no longer do. */
void weir_worker_hold(struct weir_worker *worker, uint32_t decisions);
void weir_worker_unhold(struct weir_worker *worker, uint32_t decisions);

/* Time on the table's line, now; for what does not go through a batch. */
uint64_t weir_worker_time(struct weir_worker *worker);

/* Reads the wall clock into worker->wall_s, for what answers before the turn has. */
void weir_worker_read_wall_clock(struct weir_worker *worker);

/* Has the engine decide what is queued, at this time: before something that works on the store
 * directly and must not overtake it. */
void weir_worker_settle(struct weir_worker *worker, uint64_t now_ns);

/* Puts a connection on the list of those that this turn must flush. */
void weir_worker_mark(struct weir_worker *worker, struct weir_connection *connection);
/* Puts a connection on the list of those that wait until decisions are free. */
void weir_worker_stall(struct weir_worker *worker, struct weir_connection *connection);

/* A zeroed connection, on the list of all; NULL: no memory. */
struct weir_connection *weir_worker_connection(struct weir_worker *worker,
                                               struct weir_listener *listener);
/* Sets the connection's deadline, on the clock of the loop. */
void weir_worker_watch(struct weir_worker *worker, struct weir_connection *connection,
                       uint64_t deadline_ms);
void weir_worker_unwatch(struct weir_worker *worker, struct weir_connection *connection);
/* What new connections of a kind of listener encrypt with; NULL: they are plain. */
struct weir_tls_context *weir_worker_tls_context(const struct weir_worker *worker,
                                                 const struct weir_front *front);
/* Its handle is closed: takes it back. */
void weir_worker_forget(struct weir_worker *worker, struct weir_connection *connection);

struct weir_slot *weir_worker_slot(struct weir_worker *worker);
void weir_worker_give_slot(struct weir_worker *worker, struct weir_slot *slot);

#endif
