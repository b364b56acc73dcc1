/* SPDX-License-Identifier: Apache-2.0 */
/* What is in flight for streams of quotas: the peeks and charges of their buckets' limits.
 *
 *   tick, or one has ended ─▶ due bucket ─▶ its states are claimed ─▶ peek ─▶ plan ─▶ charge ─▶
 * READY (feature/envoy/server/quota/assign.h)                 └──── a slot each ────┘
 *
 * Each has a slot of its connection, which waits first for the peek and then for the charge. The
 * table decides both in the turn in which they are queued. Redis answers later: the loop continues,
 * and a stream that is closed meanwhile cancels its decisions; what was charged stays charged.
 *
 * Both decide at the states of the limits, and nowhere else (weir_engine_unaided); where the store
 * fails, they are denied and nothing is charged on this node, whatever `on_store_error` says.
 *
 * Bounds: WEIR_QUOTA_FLIGHTS_MAX for a stream, and twice as many for a worker. Threads: the
 * worker's.
 */
#ifndef WEIR_SERVER_GRPC_QUOTA_FLIGHT_H
#define WEIR_SERVER_GRPC_QUOTA_FLIGHT_H

#include "feature/envoy/server/quota/assign.h"
#include "feature/envoy/server/quota/service.h"
#include "server/grpc/grpc.h"

/* With two calls to Redis of 0.5 ms each, 32,000 assignments a second for a stream. */
#define WEIR_QUOTA_FLIGHTS_MAX 32

#define WEIR_QUOTA_DOMAIN_MAX 256

/* One peek or charge in flight. */
struct weir_grpc_quota_flight {
    struct weir_grpc_quota *quota;
    struct weir_quota_bucket *bucket;    /* NULL: this is free */
    struct weir_slot *slot;              /* NULL: it is being written */
    struct weir_decision *peek, *charge; /* NULL: none yet */
    uint64_t asked_ns;                   /* when the peek was queued */
};

/* A stream of StreamRateLimitQuotas. */
struct weir_grpc_quota {
    struct weir_grpc_stream *stream;
    struct weir_grpc_quota *previous, *next; /* of the worker */
    struct weir_quota_stream *client;
    /* When an assignment was planned; 0: there is none. */
    uint64_t begun_ms; /* the first one that is written and has no PING behind it yet */
    uint64_t ping_ms;  /* the one whose PING is on its way */
    uint64_t more_ms;  /* the first one that was sent since */
    size_t domain_size;
    char domain[WEIR_QUOTA_DOMAIN_MAX];
    bool wants; /* its buckets are to be looked at */
    uint32_t flight_count;
    struct weir_grpc_quota_flight flights[WEIR_QUOTA_FLIGHTS_MAX];
};

struct weir_quota_service *weir_grpc_quota_service(const struct weir_grpc_quota *quota);
void weir_grpc_quota_count(const struct weir_grpc_quota *quota, enum weir_quota_count what);

/* The time by which assignments live: that of the worker's table. */
uint64_t weir_grpc_quota_now_ms(const struct weir_grpc_quota *quota);

/* Whether the client is slow to read: nothing is begun or sent for it until it has read. */
bool weir_grpc_quota_is_behind(const struct weir_grpc_quota *quota);

/* Begins what is due and has room. `all`: of all streams that want it; else it ends after some
 * whose states are claimed, and the next call continues there. */
void weir_grpc_quota_fly(struct weir_grpc *grpc, bool all);

/* The stream ends: cancels what is in flight. */
void weir_grpc_quota_land(struct weir_grpc_quota *quota);

/* In quota.c: a flight of the stream has ended, and perhaps others can begin. */
void weir_grpc_quota_landed(struct weir_grpc_quota *quota);

#endif
