/* SPDX-License-Identifier: Apache-2.0 */
/* The file of the last good response: what counts after a start until the control plane answers.
 *
 *   "weir xds 1\n", SipHash-2-4-128 of the message (16 bytes), the message
 *
 * It is written beside its place and renamed, so that a reader finds a whole one or none. The hash
 * finds damage, not an attacker: who may write the file may set the limits.
 *
 * Threads: one at a time for a file.
 */
#ifndef WEIR_FEATURE_ENVOY_SERVER_XDS_CACHE_H
#define WEIR_FEATURE_ENVOY_SERVER_XDS_CACHE_H

#include <weir/error.h>

#include "feature/envoy/server/xds/stream.h"

/* `response` has the number 0. Errors, with the reason: WEIR_ERR_IO (it cannot be read, is damaged,
 * or has more than `most` bytes), WEIR_ERR_MEMORY. A file that is not there is WEIR_ERR_NOT_FOUND
 * without a reason. */
int weir_xds_cache_read(const char *path, uint64_t most, struct weir_xds_response *response,
                        struct weir_reason *reason) __attribute__((warn_unused_result));

/* Errors: WEIR_ERR_IO with the reason. */
int weir_xds_cache_write(const char *path, const struct weir_xds_response *response,
                         struct weir_reason *reason) __attribute__((warn_unused_result));

#endif
