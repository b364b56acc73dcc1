/* The Redis store: states in Redis, Valkey or Redis Cluster, shared by many nodes.
 *
 * Exact mode: every decision is one script call per slot (decide.lua over the algorithms' files),
 * in Redis' time, pipelined with all others of the turn. Leased mode: this worker takes shares of a
 * key's budget in advance and decides at once; see lease.h. docs/distributed.md has the promises.
 *
 *   submit ──▶ memo of denials ──▶ leases ──▶ plan: checks by slot ──▶ script ──▶ client
 *   done   ◀── outcomes  ◀── reply ◀── (next slot, or roll back) ◀──────────────────┘
 *
 * The store never waits: while the circuit breaker is open, or when no server is connected, submit
 * finishes the decision at its next turn with WEIR_ERR_STORE, and the engine applies
 * on_store_error.
 */
#ifndef WEIR_STORE_REDIS_REDIS_H
#define WEIR_STORE_REDIS_REDIS_H

#include <stdatomic.h>
#include <uv.h>

#include "store/redis/breaker.h"
#include "store/redis/client.h"
#include "store/store.h"

/* Upper bounds of the latency histogram's buckets, in us; one more is open. */
#define REDIS_LATENCY_BUCKETS 14
extern const uint32_t redis_latency_bounds_us[REDIS_LATENCY_BUCKETS];

/* Written by the worker alone, read by anyone: each value is some moment's. */
struct weir_store_redis_stats {
    _Atomic uint64_t up;      /* 1: connected and the breaker is not open */
    _Atomic uint64_t breaker; /* enum redis_breaker_state */
    _Atomic uint64_t calls, errors, timeouts, redirects, rollbacks, unknown;
    _Atomic uint64_t latency_ns, latency_buckets[REDIS_LATENCY_BUCKETS + 1];
    _Atomic uint64_t remembered; /* denials answered from memory */
    _Atomic uint64_t leases, lease_refills, lease_returns, lease_decisions;
    _Atomic uint64_t breaker_opened;
};

struct weir_store_redis_options {
    uv_loop_t *loop;
    const struct redis_url *url;
    const char *prefix;   /* of every key; NULL: "weir:" */
    uint64_t deadline_ns; /* of a decision; 0: 20 ms */
    uint64_t lease_ns;    /* the longest life of a share; 0: 1 s */
    uint64_t remember_ns; /* how long a denial is remembered; at most and by default 100 ms */
    uint32_t memory_keys; /* leases and remembered denials, each; 0: 65536 */
    uint64_t random_seed; /* of jitter, and of the ids of reservations and leases */
    const uint64_t *test_time_ns; /* tests only: the time that scripts take for the server's */
    /* One line for a change of state ("store_down", "store_up", "breaker_open", …); may be NULL. */
    void (*event)(void *context, const char *event, const char *text);
    void *event_context;
};

/* Errors: as redis_client_open; the loop must be run once more then, for handles to close. */
int weir_store_redis_open(struct weir_store **store, const struct weir_store_redis_options *options,
                          struct weir_reason *reason) __attribute__((warn_unused_result));

/* Hands back what this worker holds (shares of budgets), then closes: `closed` is called when all
 * handles of the loop are closed, after 200 ms at the latest. Instead of ops->close, where the loop
 * still runs. */
void weir_store_redis_shutdown(struct weir_store *store, void (*closed)(void *context),
                               void *context);

const struct weir_store_redis_stats *weir_store_redis_stats(const struct weir_store *store);

#endif
