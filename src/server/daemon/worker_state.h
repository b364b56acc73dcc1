/* SPDX-License-Identifier: Apache-2.0 */
/* The private part of a worker: for worker.c, and for tests that replace it or look inside.
 *
 * Threads: the worker's own, except the atomic fields, by which others hand things over.
 */
#ifndef WEIR_SERVER_DAEMON_WORKER_STATE_H
#define WEIR_SERVER_DAEMON_WORKER_STATE_H

#include "feature/region/server/lenders.h"
#include "server/daemon/worker.h"
#include "server/net/pieces.h"

#define WEIR_WORKER_LISTENERS_MAX 5

struct weir_worker_state {
    struct weir_worker base; /* first: the one is the other */

    struct weir_shared_store *shared;       /* of base.store, where nodes share it */
    struct weir_sticky_peers *sticky;       /* of base.store, where it is the tables of a fleet */
    struct weir_lenders *lenders;           /* of all workers; NULL: no region lends */
    struct weir_lender_stores regions;      /* its own */
    struct weir_directories *directories;   /* of all workers; NULL: no caller is remote */
    struct weir_redis_directory *directory; /* its own */
    struct weir_certificates *certificates; /* NULL: every listener is plain */

    uv_loop_t loop;
    uv_check_t turn;
    uv_prepare_t late_turn; /* for what timers have made ready: poll comes next and may sleep */
    uv_idle_t rest;         /* a turn has left something for the next: poll does not sleep */
    uv_timer_t tick;        /* the wheel's */
    _Atomic bool alive;     /* it has had a tick since weir_worker_alive has begun anew */
    uv_timer_t deadline;    /* of pending decisions */
    uv_async_t wake;        /* another thread has handed something over */
    uint8_t fronts;         /* listeners that this turn has decided something of: a bit each */
    bool run_wanted;        /* the engine is to run, also without a queued decision */
    bool leaving;           /* it hands back what it holds of the shared stores */
    unsigned stores_left;   /* that are yet to close */
    struct weir_listener listeners[WEIR_WORKER_LISTENERS_MAX];
    unsigned listener_count;

    _Atomic(struct weir_rules *) next_rules;
    _Atomic(struct weir_certificates *) next_certificates;
    _Atomic bool drain_wanted, stop_wanted;

    uint32_t decisions; /* in the pool */
    uint32_t taken;     /* out of it */
    uint32_t queued;    /* decisions in the engine since its last run */
    uint32_t held;      /* in batches that wait for the lookup of a caller */
    uint32_t kept;      /* taken, once all that could be written was: see worker_room */
    uint32_t spent;     /* work of this turn, in decisions: see WEIR_TURN_MAX */

    struct weir_wheel wheel;
    struct weir_connection *all;                /* every open connection */
    struct weir_connection *dirty, **dirty_end; /* those with something to write */
    struct weir_connection_list stalled;        /* those that wait for decisions */
    struct weir_pieces pieces;                  /* requests that are done in pieces */
    struct weir_connection *free_connections;
    struct weir_slot *free_slots;
};

static inline struct weir_worker_state *weir_worker_state_of(struct weir_worker *worker)
{
    return (struct weir_worker_state *)(void *)worker;
}

#endif
