/* SPDX-License-Identifier: Apache-2.0 */
/* ratelimit.config.ratelimit.v3.RateLimitConfig as the tree that its YAML would be.
 *
 *   RateLimitConfig      name 1, domain 2, descriptors 3
 *   RateLimitDescriptor  key 1, value 2, rate_limit 3, descriptors 4, shadow_mode 5,
 *                        detailed_metric 6, quota_mode 7, metadata 8 (google.protobuf.Struct)
 *   RateLimitPolicy      unit 1, requests_per_unit 2, unlimited 3, name 4, replaces 5 {name 1}
 *
 * So there is one compiler, and one set of messages for what is wrong, whichever way a
 * configuration comes. `share_threshold`, `value_to_metric` and `weir` are YAML's alone.
 *
 * Source: envoyproxy/go-control-plane, ratelimit/config/ratelimit/v3/rls_conf.proto;
 * envoyproxy/ratelimit, src/config/config_xds.go. Threads: pure functions.
 */
#ifndef WEIR_FEATURE_ENVOY_SERVER_XDS_MESSAGE_H
#define WEIR_FEATURE_ENVOY_SERVER_XDS_MESSAGE_H

#include "feature/envoy/rules/envoy.h"

#define WEIR_XDS_TYPE_URL "type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig"

/* Messages in each other; deeper ones are an error. */
#define WEIR_XDS_DEPTH_MAX 100

/* A weir_envoy_tree_fn over the bytes of a RateLimitConfig. */
int weir_xds_tree(struct rules_node **root, struct rules_arena *arena,
                  const struct weir_envoy_file *file, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* The files of a DiscoveryResponse, which keep its bytes in use: a name, which the arena has, and a
 * message each. Errors: WEIR_ERR_SYNTAX with the reason (a resource of another type, a name
 * that is no text, malformed bytes), WEIR_ERR_MEMORY. */
int weir_xds_files(struct weir_envoy_file **files, uint32_t *count, struct rules_arena *arena,
                   struct weir_bytes response, struct weir_reason *reason)
    __attribute__((warn_unused_result));

#endif
