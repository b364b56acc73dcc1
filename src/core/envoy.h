/* SPDX-License-Identifier: Apache-2.0 */
/* Envoy's rate limit service, as plain data: a ShouldRateLimit call and its reply.
 *
 * The messages of envoy.service.ratelimit.v3 without their encoding, so that a codec (protobuf,
 * JSON) needs neither rules nor server, and the rules need no codec. Numbers of enums are those of
 * the published .proto files. All pointers are borrowed.
 *
 * Source: envoy/service/ratelimit/v3/rls.proto and envoy/extensions/common/ratelimit/v3/
 * ratelimit.proto of github.com/envoyproxy/envoy.
 */
#ifndef WEIR_CORE_ENVOY_H
#define WEIR_CORE_ENVOY_H

#include <stdbool.h>

#include <weir/bytes.h>

/* What one request may hold; more is an error of the call (RESOURCE_EXHAUSTED). Envoy sends a
 * handful; the bound keeps the decisions of one call below what a worker lets one request take. */
#define WEIR_ENVOY_DESCRIPTORS_MAX 1024

/* RateLimitResponse.RateLimit.Unit. An override (envoy.type.v3.RateLimitUnit) has the same numbers,
 * except for WEEK. */
enum weir_envoy_unit {
    WEIR_ENVOY_UNKNOWN,
    WEIR_ENVOY_SECOND,
    WEIR_ENVOY_MINUTE,
    WEIR_ENVOY_HOUR,
    WEIR_ENVOY_DAY,
    WEIR_ENVOY_MONTH, /* 30 days */
    WEIR_ENVOY_YEAR,  /* 365 days */
    WEIR_ENVOY_WEEK,
    WEIR_ENVOY_UNITS
};

struct weir_envoy_entry {
    struct weir_bytes key, value; /* never absent: an unset string is empty */
};

struct weir_envoy_descriptor {
    const struct weir_envoy_entry *entries;
    uint32_t entry_count;
    bool has_limit;             /* `limit` is present: the configuration is not asked */
    uint32_t requests_per_unit; /* of `limit` */
    uint32_t unit;              /* of `limit`, as it came: any number */
    bool has_hits_addend;       /* `hits_addend` is present, 0 included */
    bool is_negative_hits;
    uint64_t hits_addend;
};

struct weir_envoy_request {
    struct weir_bytes domain;
    const struct weir_envoy_descriptor *descriptors;
    uint32_t descriptor_count;
    uint32_t hits_addend;
};

enum weir_envoy_code { WEIR_ENVOY_CODE_UNKNOWN, WEIR_ENVOY_OK, WEIR_ENVOY_OVER_LIMIT };

struct weir_envoy_status {
    uint8_t code;
    bool has_limit;             /* current_limit and duration_until_reset are present */
    uint8_t unit;               /* enum weir_envoy_unit */
    uint32_t requests_per_unit; /* of current_limit */
    struct weir_bytes name;     /* of current_limit; empty: unset */
    uint32_t limit_remaining;
    uint64_t duration_until_reset_s; /* whole seconds, rounded up; nanos are 0 */
};

/* core.v3.HeaderValue, key and value only. */
struct weir_envoy_header {
    struct weir_bytes key, value;
};

/* google.protobuf.Value. */
enum weir_envoy_kind {
    WEIR_ENVOY_NULL,
    WEIR_ENVOY_BOOL,
    WEIR_ENVOY_NUMBER,
    WEIR_ENVOY_STRING,
    WEIR_ENVOY_LIST,
    WEIR_ENVOY_STRUCT,
};

struct weir_envoy_value {
    uint8_t kind;
    bool boolean;
    uint32_t count; /* LIST: of items; STRUCT: of names and items */
    double number;
    struct weir_bytes text;
    const struct weir_bytes *names; /* STRUCT: of its fields */
    const struct weir_envoy_value *items;
};

/* Lists and structs in lists and structs; no value here is deeper. */
#define WEIR_ENVOY_DEPTH_MAX 34

/* Limit, remaining, reset; and the action. */
#define WEIR_ENVOY_HEADERS 4

struct weir_envoy_response {
    uint8_t overall_code; /* enum weir_envoy_code */
    const struct weir_envoy_status *statuses;
    uint32_t status_count;
    uint32_t header_count; /* response_headers_to_add */
    struct weir_envoy_header headers[WEIR_ENVOY_HEADERS];
    struct weir_envoy_header request_header; /* request_headers_to_add; key.data == NULL: none */
    const struct weir_envoy_value *dynamic_metadata; /* a STRUCT; NULL: unset */
};

#endif
