/* SPDX-License-Identifier: Apache-2.0 */
/* One ShouldRateLimit, whatever it came by: gRPC or POST /json.
 *
 *     front end: bytes ─▶ struct weir_envoy_request
 *                weir_envoy_begin ─▶ feature/envoy/rules/envoy.h matches ─▶ decisions
 *                the front end queues each of weir_envoy_next, until there is none
 *                … the decisions are done …
 *                weir_envoy_answer ─▶ struct weir_envoy_response ─▶ bytes
 *                weir_envoy_give
 *
 * A call takes one decision for each 32 limits (policy EACH: every descriptor on its own), and one
 * more for each 32 refunds (is_negative_hits). A request in which no descriptor matches takes none
 * and can be answered at once. Where a limit says `weir: charge: if_all_allow`, all limits of the
 * request are one atomic decision, 32 at most.
 *
 * A request of more than WEIR_PIECE_MAX descriptors is done in pieces (net/pieces.h): the front end
 * begins and queues a piece at a time, so that others have their turn between them. The first
 * matches, the others fill and queue.
 *
 * The configuration is pinned by the call, so a reload in between changes nothing for it. It is
 * looked up anew by each call (one relaxed load); nothing has to be handed to workers.
 *
 * Memory: one buffer of the worker's (net/buffers.h) a call, of 200 bytes a descriptor or so.
 * Threads: a service belongs to one worker; struct weir_envoy_shared is internally locked.
 */
#ifndef WEIR_FEATURE_ENVOY_SERVER_CALL_H
#define WEIR_FEATURE_ENVOY_SERVER_CALL_H

#include "core/envoy.h"
#include "server/daemon/worker.h"

/* The daemon's: the present configuration and what it counts; see shared.h. */
struct weir_envoy_shared;

/* A front end's on one worker: make one in front->open, close it in front->close. */
struct weir_envoy_service;
struct weir_envoy_call;

/* `counts_calls`: calls and their times are counted, those that fail too. Errors: WEIR_ERR_MEMORY.
 */
int weir_envoy_open(struct weir_envoy_service **service, struct weir_envoy_shared *shared,
                    struct weir_worker *worker, bool counts_calls)
    __attribute__((warn_unused_result));
void weir_envoy_close(struct weir_envoy_service *service);

/* Counts a call of grpc.health.v1's Check, as the original does. */
void weir_envoy_count_check(struct weir_envoy_service *service);

/* Why there is no response. The original answers every error with UNKNOWN; so does this, except
 * for failures that the original does not have. The texts of the first two are the original's. */
enum weir_envoy_failure_kind {
    WEIR_ENVOY_FAIL_REQUEST,    /* empty domain, no descriptor, no configuration: UNKNOWN (2) */
    WEIR_ENVOY_FAIL_STORE,      /* the store could not decide: UNKNOWN (2); /json: 500 */
    WEIR_ENVOY_FAIL_TOO_LARGE,  /* more than WEIR_ENVOY_DESCRIPTORS_MAX: RESOURCE_EXHAUSTED (8) */
    WEIR_ENVOY_FAIL_OVERLOADED, /* no decision, no memory: UNAVAILABLE (14); /json: 503 */
};

struct weir_envoy_failure {
    uint8_t kind;
    struct weir_reason reason; /* for the client */
};

/* Matches the request and takes its decisions, which the caller queues; when all are done,
 * weir_envoy_answer may be called. The request and all that it points at must stay until
 * weir_envoy_give. NULL: `failure` says why, and it is counted. weir_worker_has_room must have been
 * true in this turn since the last call. */
struct weir_envoy_call *weir_envoy_begin(struct weir_envoy_service *service,
                                         const struct weir_envoy_request *request,
                                         struct weir_envoy_failure *failure);

/* Fills the next decisions of the call, of about WEIR_PIECE_MAX checks, which are to be queued in
 * this order; they stay the call's. Returns their number, 0: all were given. */
uint32_t weir_envoy_next(struct weir_envoy_call *call, struct weir_decision *const **decisions);

/* Whether the request is to be done in pieces. */
bool weir_envoy_is_long(const struct weir_envoy_request *request);

/* --- Of a request in pieces ------------------------------------------------------------------- */

/* After weir_envoy_begin in the first piece, also where it has failed: what the slot's connection
 * was promised beyond the call's decisions is free, and the turn has done so much work. */
void weir_envoy_begun(struct weir_slot *slot, const struct weir_envoy_request *request);
/* After the decisions of a weir_envoy_next are queued. */
void weir_envoy_queued(struct weir_slot *slot);

/* The response, once; it counts what is counted. NULL: `failure` says why. What it points at is
 * valid until weir_envoy_give. */
const struct weir_envoy_response *weir_envoy_answer(struct weir_envoy_call *call,
                                                    struct weir_envoy_failure *failure);

/* Gives everything back. Before the answer (the client is gone), its decisions are cancelled. */
void weir_envoy_give(struct weir_envoy_call *call);

/* What /healthcheck and grpc.health.v1 of "ratelimit" tell, as in the original, where both are
 * probes of liveness: it does not stop, has a domain if it needs one, and has once reached its
 * store; with `healthy_with_store`, some worker reaches it now. Any thread. */
bool weir_envoy_healthy(const struct weir_envoy_shared *shared);

/* Whether calls fail, or are denied, while the store is not reached: what readiness asks. Any
 * thread. */
bool weir_envoy_fails_without(const struct weir_envoy_shared *shared);

#endif
