/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON of a check (wire/json/check.h) as a request: of /v1/check, of traces, of `weir explain`.
 *
 * `headers` are what the request itself says, and so are `method`, `path`, `host` and `ip`, which
 * are not to be in `attributes`. What `attributes` says goes before all of these (rules/source.h),
 * and `costs` before `attributes`.
 */
#ifndef WEIR_ENGINE_HTTP_CHECK_REQUEST_H
#define WEIR_ENGINE_HTTP_CHECK_REQUEST_H

#include "rules/source.h"
#include "wire/json/check.h"

/* Fills the request, whose values point into the check's text and `room`. Errors: as
 * weir_request_end; WEIR_ERR_SYNTAX for an attribute that a top-level field gives (`client.ip`:
 * `ip`), and as weir_cost_find. */
int weir_check_request_fill(struct weir_request *request, const struct weir_rules *rules,
                            const struct weir_check_json *check, enum weir_trust trust,
                            struct weir_room room, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* Finds the attribute of a cost by name, and adds it to `seen`, a set. Errors: WEIR_ERR_SYNTAX (no
 * limit counts it, or it is in the set, from another spelling). */
int weir_cost_find(const struct weir_rules *rules, struct weir_bytes name,
                   uint64_t seen[WEIR_ATTRIBUTE_WORDS], struct weir_reason *reason)
    __attribute__((warn_unused_result));

#endif
