/* SPDX-License-Identifier: Apache-2.0 */
/* Counters to statsd: what has been counted since the last time, once an interval, over UDP or TCP.
 *
 *   ratelimit.service.rate_limit.d.k_v.total_hits.__foo=bar:12|c       tags as the original's are
 *   ratelimit.service.rate_limit.d.k_v.total_hits:12|c|#foo:bar        DogStatsD
 *   ratelimit_server.ShouldRateLimit.response_time:0.084|ms|@0.01      the mean of 100 calls
 *
 * Over TCP nothing is lost while no server listens: what could not be sent is sent with the next
 * interval. Over UDP what is not received is lost. A datagram holds whole lines, at most
 * WEIR_STATSD_PACKET bytes.
 *
 * Memory: what was counted at the last flush, about 100 bytes a key. Threads: the main thread's, on
 * its loop.
 */
#ifndef WEIR_FEATURE_ENVOY_SERVER_STATSD_H
#define WEIR_FEATURE_ENVOY_SERVER_STATSD_H

#include <uv.h>

#include "feature/envoy/server/shared.h"

/* Ethernet's 1500 less the heads of IPv6 and UDP, less what tunnels add. */
#define WEIR_STATSD_PACKET 1400

struct weir_envoy_statsd;

/* Starts on a loop; the settings are those of `shared`. Errors: WEIR_ERR_MEMORY. */
int weir_envoy_statsd_open(struct weir_envoy_statsd **statsd, uv_loop_t *loop,
                           struct weir_envoy_shared *shared) __attribute__((warn_unused_result));

/* Sends nothing more, after one last time over UDP; the loop is about to close its handles. NULL is
 * allowed. */
void weir_envoy_statsd_stop(struct weir_envoy_statsd *statsd);

/* The loop has closed all its handles. NULL is allowed. */
void weir_envoy_statsd_free(struct weir_envoy_statsd *statsd);

#endif
