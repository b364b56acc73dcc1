/* SPDX-License-Identifier: Apache-2.0 */
/* What customers may know of rules, as JSON: all forms of `weir document` are made of it.
 *
 *     {"limits": [{"name", "methods": [...], "paths": [...], "conditions": [{"name", "wanted"}],
 *                  "key": [...], "algorithm", "costs": [{"method", "path", "cost"}],
 *                  "cost" or "cost_from", "unless": [...], "when", "charged_when_denied",
 *                  "status", "above_status", "body",
 *                  "rates": {PLAN: [{"limit", "seconds", "burst", "text",
 *                                    "calls": {COST: "text"}}]}}],
 *      "plans": [...], "fields": [...]}
 *
 * "rates" has one entry "" where the limit is not by plan; an empty list is "unlimited". Limits in
 * shadow are left out, since they deny no request, and so are secrets of `match`.
 *
 * Memory: the caller's, by json_decref. Threads: reads the rules only.
 */
#ifndef WEIR_CLI_DOCUMENT_MODEL_H
#define WEIR_CLI_DOCUMENT_MODEL_H

#include <jansson.h>

#include "rules/rules.h"

/* NULL: no memory. */
json_t *document_model(const struct weir_rules *rules);

#endif
