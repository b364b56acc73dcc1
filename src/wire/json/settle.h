/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON of /v1/settle and /v1/report: a parser for one fixed schema, in place, as check.h.
 *
 *   {"reservation": TOKEN, "cost": N}
 *   {"reservation": TOKEN, "costs": {"tokens": N}}     costs by name: costs.h
 *   {"reservation": TOKEN, "status": 503}     or "503", or a class: "5xx", which is 500
 *   {"reservation": TOKEN, "outcome": "5xx"}  the same
 *
 * One of cost and costs, a status, or both; perhaps "latency_ms": N; nothing else.
 */
#ifndef WEIR_WIRE_JSON_SETTLE_H
#define WEIR_WIRE_JSON_SETTLE_H

#include <stdbool.h>
#include <weir/bytes.h>
#include <weir/error.h>

#include "wire/json/costs.h"

struct weir_settle_json {
    struct weir_bytes reservation;
    uint64_t cost;       /* with has_cost */
    uint64_t latency_ms; /* with has_latency: how long the request took */
    uint32_t status;     /* 100 to 599; 0: none is given */
    bool has_cost, has_costs, has_latency;
    struct weir_json_costs costs; /* with has_costs */
};

/* Returns 0. Errors: WEIR_ERR_SYNTAX, WEIR_ERR_RANGE; `reason` (may be NULL) names the field and
 * the byte. */
int weir_settle_json_parse(char *text, size_t size, struct weir_settle_json *settle,
                           struct weir_reason *reason) __attribute__((warn_unused_result));

/* Whether a JSON object has a member `reservation`: what tells the two forms of /v1/report apart.
 * Reads only the names of its members; false also where the text is no JSON. */
bool weir_settle_json_has_reservation(const char *text, size_t size);

/* "503", or "5xx", which is 500. Errors: WEIR_ERR_SYNTAX. */
int weir_status_parse(struct weir_bytes text, uint32_t *status) __attribute__((warn_unused_result));

#endif
