/* SPDX-License-Identifier: Apache-2.0 */
/* envoy.service.discovery.v3: what a client of configuration (xDS, state of the world) sends and
 * reads on its stream.
 *
 *   DiscoveryRequest    version_info 1, node 2 {id 1, metadata 3}, type_url 4, response_nonce 5,
 *                       error_detail 6 {code 1, message 2}; resource_names (3) stays empty: all
 *   DiscoveryResponse   version_info 1, resources 2 (Any {type_url 1, value 2}), type_url 4,
 *                       nonce 5
 *
 * Source: envoyproxy/envoy, api/envoy/service/discovery/v3/discovery.proto and
 * api/envoy/config/core/v3/base.proto. Threads: pure functions.
 */
#ifndef WEIR_WIRE_GRPC_DISCOVERY_H
#define WEIR_WIRE_GRPC_DISCOVERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/bytes.h>
#include <weir/error.h>

struct weir_discovery_pair {
    const char *name, *value;
};

struct weir_discovery_request {
    const char *node;                           /* its id */
    const struct weir_discovery_pair *metadata; /* of the node: texts */
    uint32_t metadata_count;
    struct weir_bytes type_url, version, nonce;
    const char *error; /* why the last response was refused; NULL: it was not */
};

/* Writes at most `size` bytes; returns how many the message has. */
size_t weir_discovery_request_write(const struct weir_discovery_request *request, char *out,
                                    size_t size);

/* Its texts are those of the message that was read. */
struct weir_discovery_response {
    struct weir_bytes version, nonce, type_url;
    uint32_t count; /* of the resources */
};

/* Errors: WEIR_ERR_SYNTAX. */
int weir_discovery_response_read(struct weir_discovery_response *response,
                                 struct weir_bytes message) __attribute__((warn_unused_result));

/* The resource behind `*at`, which is 0 at first, of a message that was read: its type and its
 * bytes. False: there is none. */
struct weir_discovery_resource {
    struct weir_bytes type_url, value;
};
bool weir_discovery_resource_next(struct weir_bytes message, size_t *at,
                                  struct weir_discovery_resource *resource);

#endif
