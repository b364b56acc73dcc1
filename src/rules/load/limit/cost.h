/* SPDX-License-Identifier: Apache-2.0 */
/* What a request costs, and what is given back later: `cost`, `refund_on`, `refund_cap` and
 * `debt` of a limit. See charge/cost.h and charge/settle.h. */
#ifndef WEIR_RULES_LOAD_LIMIT_COST_H
#define WEIR_RULES_LOAD_LIMIT_COST_H

#include "rules/load/keyword.h"

extern const struct rules_section rules_section_cost;

/* A number, a table of routes, or an attribute. */
void rules_load_cost(struct rules_loader *loader, const struct rules_node *node,
                     struct rules_rule *rule);

/* `fields` are those of the limit (limit_fields.h), whose rates are loaded already. */
void rules_load_settle(struct rules_loader *loader, const struct rules_field *fields,
                       struct rules_rule *rule);

#endif
