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
 * weir_request_end; WEIR_ERR_SYNTAX for an attribute that has a field of its own, and for a cost
 * that no limit counts. */
int weir_check_request_fill(struct weir_request *request, const struct weir_rules *rules,
                            const struct weir_check_json *check, enum weir_trust trust,
                            struct weir_room room, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* Says that no limit counts a cost of this name. */
void weir_cost_unknown(struct weir_bytes name, struct weir_reason *reason);

#endif
