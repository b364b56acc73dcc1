/* SPDX-License-Identifier: Apache-2.0 */
/* The Redis store: states in Redis, Valkey or Redis Cluster, shared by many nodes.
 *
 * Exact mode: every decision is one script call per slot (lua/decide.lua over the algorithms'
 * files), in Redis' time, pipelined with all others of the turn. Leased mode: this worker takes
 * portions of a key's budget in advance and decides at once; see share/shares.h.
 * docs/distributed.md has the promises.
 *
 *   submit ──▶ shares ──▶ denials ──▶ breaker ──▶ plan: checks by slot ──▶ script ──▶ client
 *   done   ◀── outcomes  ◀── reply ◀── (next slot, or roll back) ◀─────────────────────┘
 *
 * The store never waits. A decision that needs no server (no check with a state, a share that
 * covers it, a remembered denial) is made in submit. A decision that cannot be sent (the breaker is
 * open, no server is connected, no memory within the bounds) ends with WEIR_ERR_STORE or
 * WEIR_ERR_FULL, through `done` from the next flush; every other one ends from the loop. A decision
 * is sent at most once: without an answer it fails, whatever the server has done. The effect of
 * such a call is undone where that is possible: reservations are rolled back, leases of concurrency
 * limits ended (but not those of a request that can be repeated, WEIR_CHECK_IDEMPOTENCY); a single
 * call's charge stays.
 *
 * decision->now_ns is the server's time, or an estimate of it if no server was asked; in a Cluster
 * the latest of the servers asked. The store fills in the tags of checks that have
 * none.
 *
 * Deadlines are the caller's (cancel); one that has passed counts for the breaker as a call without
 * an answer (breaker.h, shared_breaker.h).
 *
 * Memory: per worker at most 64 MiB of calls, 32 MiB of pending decisions, and what memory_keys
 * costs (168 bytes a remembered denial; share/shares.h); taken as needed, and kept, so that a
 * steady load allocates nothing. Threads: one store per loop, used on its thread only, except
 * prepare and the stats.
 */
#ifndef WEIR_STORE_REDIS_REDIS_H
#define WEIR_STORE_REDIS_REDIS_H

#include <stdatomic.h>
#include <uv.h>

#include "base/breaker.h"
#include "store/redis/client/client.h"
#include "store/redis/secret.h"
#include "store/redis/shared_breaker.h"
#include "store/store.h"

/* Upper bounds of the latency histogram's buckets, in us; one more is open. */
#define REDIS_LATENCY_BUCKETS 14
extern const uint32_t redis_latency_bounds_us[REDIS_LATENCY_BUCKETS];

#define REDIS_PREFIX_MAX 127

/* Written by the worker only, read by any thread; the values are not of one moment. */
struct weir_store_redis_stats {
    _Atomic uint64_t up;      /* 1: connected and the breaker is not open */
    _Atomic uint64_t breaker; /* enum weir_breaker_state */
    _Atomic uint64_t calls, errors, timeouts, redirects, rollbacks, unknown;
    _Atomic uint64_t latency_ns, latency_buckets[REDIS_LATENCY_BUCKETS + 1];
    _Atomic uint64_t remembered; /* denials answered from memory */
    _Atomic uint64_t shares, share_refills, share_returns, share_decisions, share_forfeited;
    _Atomic uint64_t breaker_opened;
    /* Of calls for shares, smoothed, where it lends; 1 once it is known. */
    _Atomic uint64_t roundtrip_ns, roundtrips_known;
};

struct weir_store_redis_options {
    uv_loop_t *loop;
    const struct redis_url *url;
    const char *prefix;     /* of every key, REDIS_PREFIX_MAX at most, no braces; NULL: "weir:" */
    uint64_t deadline_ns;   /* of a decision; 0: 20 ms */
    uint64_t share_life_ns; /* the longest life of a share; 0: 1 s */
    uint64_t remember_ns;   /* how long a denial is remembered; at most and by default 100 ms */
    uint32_t memory_keys;   /* shares and remembered denials, each; 0: 65536 */
    bool far; /* it is in another region: it lends, and decides exactly what is submitted */
    /* Of all stores of this process on that server, borrowed; NULL: none. A store always has a
     * breaker of its own too, which is for its own connection. */
    struct redis_shared_breaker *shared_breaker;
    uint64_t random_seed;         /* of jitter, and of the ids of reservations and leases */
    struct redis_secret *secret;  /* of all stores of this node (secret.h), borrowed; NULL: none */
    const uint64_t *test_time_ns; /* tests only: the time that scripts take for the server's */
    /* One line for a change of state; may be NULL. store_up, store_down: a server, or why none;
     * store_failover, store_topology: as the client's events; breaker_open, breaker_closed: a
     * server that is connected and silent, and its end; shared_breaker_open, shared_breaker_closed:
     * the same for all stores of `shared_breaker`, by the one that has found it; store_error: an
     * error reply to a decision, one a second at most; store_secret: the store's secret has been
     * replaced. */
    void (*event)(void *context, const char *event, const char *text);
    void *event_context;
};

/* Errors: as redis_client_open, WEIR_ERR_RANGE (the prefix). The loop must be run once more then,
 * for handles to close. */
int weir_store_redis_open(struct weir_store **store, const struct weir_store_redis_options *options,
                          struct weir_reason *reason) __attribute__((warn_unused_result));

/* Gives back the shares that this worker holds, then closes: `closed` is called when all
 * handles of the loop are closed, after 200 ms at the latest. Instead of ops->close, where the loop
 * still runs. */
void weir_store_redis_shutdown(struct weir_store *store, void (*closed)(void *context),
                               void *context);

const struct weir_store_redis_stats *weir_store_redis_stats(const struct weir_store *store);

#endif
