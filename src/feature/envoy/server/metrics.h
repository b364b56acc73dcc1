/* SPDX-License-Identifier: Apache-2.0 */
/* What Envoy's service has counted, under the original's names: statsd's, and Prometheus' as its
 * own mapping of them has them. docs/envoy.md lists both.
 *
 * Threads: the main thread's.
 */
#ifndef WEIR_FEATURE_ENVOY_SERVER_METRICS_H
#define WEIR_FEATURE_ENVOY_SERVER_METRICS_H

#include <stdio.h>

#include "feature/envoy/server/shared.h"

/* Room for "ratelimit.service.rate_limit.", a key and a count's name. */
#define WEIR_ENVOY_NAME_MAX (WEIR_ENVOY_KEY_MAX + 64)

/* The name of a counter of a key that weir_envoy_shared_keys has given; `size` at most
 * WEIR_ENVOY_NAME_MAX. */
void weir_envoy_stat_name(struct weir_bytes key, enum weir_envoy_count count, char *name,
                          size_t size);

/* Counters that belong to no key: names and values of the totals. */
#define WEIR_ENVOY_SINGLES 7
struct weir_envoy_single {
    const char *name;
    uint64_t value;
};
void weir_envoy_singles(const struct weir_envoy_totals *totals,
                        struct weir_envoy_single singles[WEIR_ENVOY_SINGLES]);

/* "name: value" for every counter, a line each: /stats. Prometheus' text format 0.0.4. Both return
 * a text to be freed with free(), NULL: no memory. */
char *weir_envoy_stats_text(struct weir_envoy_shared *shared, size_t *size);
char *weir_envoy_prometheus_text(struct weir_envoy_shared *shared, size_t *size);

#endif
