/* SPDX-License-Identifier: Apache-2.0 */
/* envoy.service.rate_limit_quota.v3 (RLQS) as messages: reports of use from Envoy, assignments to
 * it. The bytes of a bucket's id are kept as Envoy sent them and are sent back unchanged, because
 * Envoy finds the bucket by them. What is read and written here is what Envoy 1.40 reads and
 * writes:
 *
 *   - The domain comes in each message of reports.
 *   - A fill interval loses its nanoseconds where the rate is computed, and its seconds are not
 *     compared where Envoy decides whether a bucket has changed. So all assignments have one
 *     interval, WEIR_GRPC_QUOTA_FILL_S, and a nanosecond more: that part is compared, and makes
 *     assignments differ from every fallback bucket of Envoy's configuration in whole seconds.
 *   - A time to live loses its nanoseconds; an unset one and 0 expire at once.
 *
 * Source: https://www.envoyproxy.io/docs/envoy/latest/api-v3/service/rate_limit_quota/v3/rlqs.proto
 * Threads: pure functions. */
#ifndef WEIR_WIRE_GRPC_QUOTA_H
#define WEIR_WIRE_GRPC_QUOTA_H

#include <stdbool.h>
#include <stdint.h>
#include <weir/error.h>

#include "core/envoy.h"
#include "wire/grpc/arena.h"

/* Entries of a bucket's id; real ones have one to five. */
#define WEIR_GRPC_QUOTA_ENTRIES_MAX 32
/* Bytes of a bucket's id, encoded: entries of 64 bytes. */
#define WEIR_GRPC_QUOTA_ID_MAX 2048
/* Buckets in one message of reports. */
#define WEIR_GRPC_QUOTA_USAGES_MAX 8192
#define WEIR_GRPC_QUOTA_FILL_S 10

/* Of one bucket. */
struct weir_grpc_quota_usage {
    struct weir_bytes id; /* the encoded BucketId */
    const struct weir_envoy_entry *entries;
    uint32_t entry_count;
    uint64_t allowed, denied; /* requests since the last report */
    uint64_t elapsed_s;       /* whole seconds since then; 0: less than one, or a new bucket */
};

struct weir_grpc_quota_reports {
    struct weir_bytes domain;
    const struct weir_grpc_quota_usage *usages;
    uint32_t usage_count;
};

/* Reads a RateLimitQuotaUsageReports. What `reports` points at is in the arena. Unknown fields are
 * ignored; a negative time_elapsed counts as 0. Errors:
 * WEIR_ERR_SYNTAX (no such message, a text that is not UTF-8, a bucket without an id, an entry
 * without a key), WEIR_ERR_RANGE (more buckets, entries or bytes of an id than the bounds above),
 * WEIR_ERR_TOO_LARGE (the arena's bound). */
int weir_grpc_quota_read(struct weir_grpc_quota_reports *reports, struct weir_bytes message,
                         struct weir_grpc_arena *arena) __attribute__((warn_unused_result));

enum weir_grpc_quota_kind {
    WEIR_GRPC_QUOTA_ABANDON,   /* Envoy forgets the bucket */
    WEIR_GRPC_QUOTA_DENY_ALL,  /* until the time to live ends */
    WEIR_GRPC_QUOTA_ALLOW_ALL, /* likewise */
    WEIR_GRPC_QUOTA_TOKENS,    /* a token bucket, until the time to live ends */
};

/* What Envoy does with one bucket. */
struct weir_grpc_quota_action {
    struct weir_bytes id;
    enum weir_grpc_quota_kind kind;
    uint32_t max_tokens, tokens_per_fill; /* of TOKENS: above 0 */
    uint32_t ttl_s;                       /* of all but ABANDON: above 0 */
};

/* The entries of an id that was read: entries[0..return value), which point into it. */
uint32_t weir_grpc_quota_entries(struct weir_bytes id,
                                 struct weir_envoy_entry entries[WEIR_GRPC_QUOTA_ENTRIES_MAX]);

/* Writes a RateLimitQuotaResponse, with gRPC's prefix before it; the bytes are in the arena.
 * Errors: WEIR_ERR_TOO_LARGE. */
int weir_grpc_quota_write(const struct weir_grpc_quota_action *actions, uint32_t count,
                          struct weir_grpc_arena *arena, struct weir_bytes *out)
    __attribute__((warn_unused_result));

#endif
