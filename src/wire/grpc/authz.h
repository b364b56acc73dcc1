/* SPDX-License-Identifier: Apache-2.0 */
/* envoy.service.auth.v3.Authorization/Check as messages: the calls of Envoy's ext_authz filter, and
 * the replies. Threads: pure functions. */
#ifndef WEIR_WIRE_GRPC_AUTHZ_H
#define WEIR_WIRE_GRPC_AUTHZ_H

#include <stdbool.h>
#include <weir/bytes.h>
#include <weir/error.h>

#include "wire/grpc/arena.h"

struct weir_grpc_pair {
    struct weir_bytes name, value;
};

struct weir_grpc_pairs {
    const struct weir_grpc_pair *list;
    size_t count;
};

/* An empty text means an absent one, except for values of headers. */
struct weir_grpc_authz_request {
    struct weir_bytes method, path, host;
    struct weir_bytes source;    /* the address of the client's side of the connection */
    struct weir_bytes principal; /* who that side has shown to be */
    struct weir_grpc_pairs headers, extensions;
};

/* Reads a CheckRequest; texts are in the arena. Headers come from `headers`, or from `header_map`
 * where that is empty. Errors: WEIR_ERR_SYNTAX, WEIR_ERR_TOO_LARGE. */
int weir_grpc_authz_read(struct weir_grpc_authz_request *request, struct weir_bytes message,
                         struct weir_grpc_arena *arena) __attribute__((warn_unused_result));

#define WEIR_GRPC_AUTHZ_REMOVE_MAX 4

struct weir_grpc_authz_response {
    bool allowed;
    int status;                              /* google.rpc.Status: enum weir_grpc_status */
    unsigned http_status;                    /* of a denial */
    struct weir_bytes body;                  /* of a denial */
    struct weir_grpc_pairs headers;          /* allowed: to the service; denied: to the client */
    struct weir_grpc_pairs response_headers; /* allowed: to the client */
    /* allowed: headers that the service must not see from the client */
    const char *remove[WEIR_GRPC_AUTHZ_REMOVE_MAX];
    size_t remove_count;
};

/* Writes a CheckResponse, gRPC's prefix before it; the bytes are in the arena. Headers replace
 * those that are there. Errors: WEIR_ERR_TOO_LARGE. */
int weir_grpc_authz_write(const struct weir_grpc_authz_response *response,
                          struct weir_grpc_arena *arena, struct weir_bytes *out)
    __attribute__((warn_unused_result));

#endif
