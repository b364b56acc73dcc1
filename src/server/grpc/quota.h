/* SPDX-License-Identifier: Apache-2.0 */
/* envoy.service.rate_limit_quota.v3.RateLimitQuotaService: streams of reports and assignments, over
 * the state machine of envoy/quota. See grpc.h.
 *
 *   reports ─▶ demand, at once
 *   tick    ─▶ each bucket that is due: peek, plan, charge (quota_flight.h) ─▶ one message of the
 *              assignments of a stream ─▶ PING behind its last DATA
 *
 * A stream is reset (CANCEL) when the PING is not answered within WEIR_QUOTA_LATE_MS after the plan
 * of the assignment, and when a message of assignments could not be written within
 * WEIR_QUOTA_CHARGE_MS after it.
 *
 * With `sticky`, streams end with UNIMPLEMENTED: its home decides whole requests, by attributes
 * that ids of buckets do not have.
 */
#ifndef WEIR_SERVER_GRPC_QUOTA_H
#define WEIR_SERVER_GRPC_QUOTA_H

#include "server/grpc/grpc.h"

void weir_grpc_quota_read_reports(struct weir_grpc_stream *stream, struct weir_bytes message);
void weir_grpc_quota_begin(struct weir_grpc_stream *stream);
void weir_grpc_quota_drop(struct weir_grpc_stream *stream);
void weir_grpc_quota_sent(struct weir_grpc_stream *stream);

/* A PING was answered, perhaps one behind an assignment. */
void weir_grpc_quota_answered(nghttp2_session *http2, const uint8_t opaque[8]);

/* Serves all buckets that are due. */
void weir_grpc_quota_tick(struct weir_grpc *grpc);

#endif
