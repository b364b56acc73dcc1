/* SPDX-License-Identifier: Apache-2.0 */
/* How one assignment is made: a state machine without I/O and without a clock.
 *
 *   IDLE ── begin ──▶ PEEKS ── peeked ──▶ CHARGES ── charged ──▶ READY ── take ──▶ IDLE
 *    ▲        │         │                    │                    ▲
 *    │        └ abandoned ── a denial ───────│────────────────────┘
 *    └── later: nothing to send ──┴── denied, failed or late ─────┘
 *
 * The caller peeks at the limits of a bucket and charges them: at the table, which answers at once,
 * or at a store that answers later, in any order, or never. A bucket has one assignment on its way
 * at a time, so a client gets its assignments in the order in which they were charged.
 *
 * From its peek until its charge nothing else of this process charges the same states for an
 * assignment: of one group only one bucket is at work, and the caller claims the states of groups
 * that share one (weir_quota_claim). Other callers and other nodes may come between; share.h shows
 * that a charge is enough nevertheless.
 *
 * A charge that is answered more than WEIR_QUOTA_CHARGE_MS after its plan, or whose message is not
 * written by then, is not sent, and stays charged. So does one whose stream ends meanwhile: the
 * bucket is gone then, and the caller drops the answer.
 *
 * Threads: as quota.h.
 */
#ifndef WEIR_FEATURE_ENVOY_SERVER_QUOTA_ASSIGN_H
#define WEIR_FEATURE_ENVOY_SERVER_QUOTA_ASSIGN_H

#include "feature/envoy/server/quota/quota.h"

/* What a peek has found. */
enum weir_quota_peeked {
    WEIR_QUOTA_SUPPLIES,      /* limits that can be assigned */
    WEIR_QUOTA_NO_LIMIT,      /* all is allowed */
    WEIR_QUOTA_DENIED_ALWAYS, /* whatever the states are */
    WEIR_QUOTA_NOT_ASSIGNABLE,
    WEIR_QUOTA_NO_ANSWER, /* the store has failed, or did not answer in time */
};

/* Begins the next assignment of a stream: a bucket in PEEKS, or in READY, where it is abandoned.
 * NULL: none can begin; `waits`: some are due, and others of their groups are at work. */
struct weir_quota_bucket *weir_quota_begin(struct weir_quota_stream *stream, uint64_t now_ms,
                                           bool *waits);

/* A bucket in PEEKS could not be peeked at, because its states are claimed: it stays due. */
void weir_quota_put_off(struct weir_quota_bucket *bucket);

/* The peek of a bucket in PEEKS was answered. With SUPPLIES: supplies[0..count), 1 at least, which
 * are changed; costs[0..count) are what to charge, by one decision. Returns whether there is
 * anything to charge: then it is in CHARGES. `now_ms`: as in weir_quota_plan. */
bool weir_quota_peeked(struct weir_quota_bucket *bucket, enum weir_quota_peeked what,
                       struct weir_quota_supply *supplies, uint32_t count, uint64_t now_ms,
                       uint64_t *costs);

/* The charge of a bucket in CHARGES has ended. `charged`: all costs are, and weir_quota_holds.
 * Returns whether the assignment is READY: else it was not charged, or not in time. */
bool weir_quota_charged(struct weir_quota_bucket *bucket, bool charged, uint64_t now_ms);

/* The next of a stream's buckets in READY, as it is sent now: its `action`, for tokens and denials
 * its `plan`, and when that was made. It is IDLE then; one that is abandoned is the caller's to
 * forget. NULL: there is none. Adds to `late` those that have waited too long to be sent. */
struct weir_quota_bucket *weir_quota_take(struct weir_quota_stream *stream, uint64_t now_ms,
                                          uint32_t *late);

#endif
