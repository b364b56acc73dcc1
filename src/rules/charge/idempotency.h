/* SPDX-License-Identifier: Apache-2.0 */
/* The record of an idempotency key: which requests are one request.
 *
 * A repeat is a request with the same idempotency key that the same limits, keys and costs apply
 * to; another cost, or another caller, makes another request. The record is a state like any other,
 * a bucket of 1 per life (see WEIR_CHECK_IDEMPOTENCY), named by a SHA-256 over all of that: over
 * the hashes of the keys and the node's secret, or, where nodes share a store, over the texts,
 * which are the same on all of them. The digest also gives the id of a lease, so that a repeated
 * request gets the same token.
 */
#ifndef WEIR_RULES_CHARGE_IDEMPOTENCY_H
#define WEIR_RULES_CHARGE_IDEMPOTENCY_H

#include "rules/match/checks.h"

/* Fills the check `record` of a decision on `checks`, at least one of which has a state; its key's
 * text is in `scratch`. *lease_id is the id for a lease of the request, never 0. Errors:
 * WEIR_ERR_TOO_LARGE (scratch is full). */
int weir_rules_idempotency(const struct weir_rules *rules, const struct weir_check *checks,
                           uint16_t count, struct weir_bytes key, const uint64_t secret[2],
                           struct weir_scratch *scratch, struct weir_check *record,
                           uint64_t *lease_id) __attribute__((warn_unused_result));

#endif
