/* SPDX-License-Identifier: Apache-2.0 */
/* The rate of a limit: `algorithm`, `rate`, `quota` or `limit`, and the options that belong to them
 * (`burst`, `segments`, `strict`, `queue`, `life`, `timezone`, `anchor`, `rollover`). */
#ifndef WEIR_RULES_LOAD_LIMIT_RATE_H
#define WEIR_RULES_LOAD_LIMIT_RATE_H

#include "rules/load/fields.h"

/* `limit` is the mapping, `fields` are its keys (limit_fields.h). */
void rules_load_rate(struct rules_loader *loader, const struct rules_node *limit,
                     struct rules_field *fields, struct rules_rule *rule);

#endif
