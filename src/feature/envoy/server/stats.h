/* SPDX-License-Identifier: Apache-2.0 */
/* Counters by the keys of Envoy's limits: "domain.key_value", and what is counted of each.
 *
 * Each service (a front end on one worker) counts in a registry of its own, so no two threads write
 * one line; an exporter sums them up by key. Keys of the configuration always find a place.
 * Keys with values of requests in them (overrides, detailed_metric, value_to_metric, domains nobody
 * has configured) find one until WEIR_ENVOY_KEYS_MAX are there; then they are counted under
 * "other", so that what clients send cannot fill the memory (the original has no bound).
 *
 * A key that a walk tells of is a name: what statsd gives a meaning (":" and "|", dots of IPv4
 * addresses) is "_", as in the original, and so is what could end a line: control characters. So
 * several keys may have one name.
 *
 * Memory: about 150 bytes and twice the key, for ever. Threads: one owner finds and counts; anybody
 * may walk.
 */
#ifndef WEIR_FEATURE_ENVOY_SERVER_STATS_H
#define WEIR_FEATURE_ENVOY_SERVER_STATS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <weir/bytes.h>

/* Keys with values of requests in them, of one registry: 5 MB at 300 bytes a key. */
#define WEIR_ENVOY_KEYS_MAX 10000
/* Keys of configurations, over all reloads. */
#define WEIR_ENVOY_FIXED_KEYS_MAX 1000000
/* Longer keys are "other". */
#define WEIR_ENVOY_KEY_MAX 512
#define WEIR_ENVOY_OTHER_KEY "other"

/* What is counted of a key, in the original's names. */
#define WEIR_ENVOY_COUNTS(X)                                                                       \
    X(total_hits)                                                                                  \
    X(over_limit)                                                                                  \
    X(near_limit)                                                                                  \
    X(over_limit_with_local_cache)                                                                 \
    X(within_limit)                                                                                \
    X(shadow_mode)                                                                                 \
    X(total_negative_hits)                                                                         \
    X(domain_not_found) /* of a key that is a domain */

enum weir_envoy_count {
#define WEIR_ENVOY_COUNT_ENUM(name) WEIR_ENVOY_COUNT_##name,
    WEIR_ENVOY_COUNTS(WEIR_ENVOY_COUNT_ENUM)
#undef WEIR_ENVOY_COUNT_ENUM
        WEIR_ENVOY_COUNT_TOTAL
};
extern const char *const weir_envoy_count_names[WEIR_ENVOY_COUNT_TOTAL];

struct weir_envoy_counters {
    _Atomic uint64_t counts[WEIR_ENVOY_COUNT_TOTAL];
};

struct weir_envoy_stats;

/* Errors: WEIR_ERR_MEMORY. */
int weir_envoy_stats_open(struct weir_envoy_stats **stats) __attribute__((warn_unused_result));
void weir_envoy_stats_close(struct weir_envoy_stats *stats);

/* The counters of a key, valid until the registry is closed; those of "other" where there is no
 * place for it. `fixed`: the key is the configuration's. */
struct weir_envoy_counters *weir_envoy_stats_find(struct weir_envoy_stats *stats,
                                                  struct weir_bytes key, bool fixed);

/* Calls `visit` with every key's name, in no order; only a caller that finds a new key waits. */
typedef void (*weir_envoy_stats_visit)(void *context, struct weir_bytes name,
                                       const struct weir_envoy_counters *counters);
void weir_envoy_stats_walk(struct weir_envoy_stats *stats, weir_envoy_stats_visit visit,
                           void *context);

#endif
