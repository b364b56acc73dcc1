/* SPDX-License-Identifier: Apache-2.0 */
/* The member `costs` of checks, reservations and settlements: costs by name.
 *
 *   "costs": {"tokens": 4818, "microusd": 1234}
 *
 * At most WEIR_JSON_COSTS_MAX, each once, whole numbers. Names and texts point into the text.
 */
#ifndef WEIR_WIRE_JSON_COSTS_H
#define WEIR_WIRE_JSON_COSTS_H

#include <weir/bytes.h>

#include "wire/json/scan.h"

#define WEIR_JSON_COSTS_MAX 8

struct weir_json_cost {
    struct weir_bytes name, text; /* text: the digits of the amount */
    uint64_t amount;
};

struct weir_json_costs {
    uint16_t count;
    struct weir_json_cost of[WEIR_JSON_COSTS_MAX];
};

/* Reads the object. Errors: WEIR_ERR_SYNTAX, WEIR_ERR_RANGE (an amount beyond 2^64 - 1),
 * WEIR_ERR_TOO_LARGE (too many). */
int weir_json_costs_read(struct json_scan *scan, struct weir_json_costs *costs)
    __attribute__((warn_unused_result));

#endif
