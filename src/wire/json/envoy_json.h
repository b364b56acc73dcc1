/* SPDX-License-Identifier: Apache-2.0 */
/* ShouldRateLimit as JSON, as protobuf's JSON mapping has it: the body of POST /json.
 *
 *   {"domain":"d","descriptors":[{"entries":[{"key":"k","value":"v"}],
 *    "limit":{"requestsPerUnit":5,"unit":"HOUR"},"hitsAddend":"2","isNegativeHits":false}],
 *    "hitsAddend":1}
 *
 * Names in camel case or as in the .proto file; null is a field that is not there; numbers may be
 * strings, enums numbers or names. What is unknown or given twice is an error. Strings are
 * unescaped in place; other than there, they hold no NUL.
 *
 * Memory: the caller's. Threads: pure.
 */
#ifndef WEIR_WIRE_JSON_ENVOY_JSON_H
#define WEIR_WIRE_JSON_ENVOY_JSON_H

#include <weir/error.h>

#include "core/envoy.h"

/* The bytes that a request of this text may take, aligned to 16. */
size_t weir_envoy_json_room(const char *text, size_t size);

/* Reads a request. It points into `text` and into `room` (weir_envoy_json_room bytes). Errors:
 * WEIR_ERR_SYNTAX, WEIR_ERR_RANGE (a number); `reason` (may be NULL) says which field and where. */
int weir_envoy_json_read(struct weir_envoy_request *request, char *text, size_t size, void *room,
                         struct weir_reason *reason) __attribute__((warn_unused_result));

/* Writes a response: at most `size` bytes. Returns how many there are in all. */
size_t weir_envoy_json_write(const struct weir_envoy_response *response, char *out, size_t size);

#endif
