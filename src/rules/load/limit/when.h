/* SPDX-License-Identifier: Apache-2.0 */
/* When a limit is in force: `when` of a limit, and `timezone` of the file. */
#ifndef WEIR_RULES_LOAD_LIMIT_WHEN_H
#define WEIR_RULES_LOAD_LIMIT_WHEN_H

#include "rules/load/fields.h"

void rules_load_when(struct rules_loader *loader, const struct rules_field *field,
                     struct rules_rule *rule);

/* The time zone of quotas and schedules that name none. */
void rules_load_timezone(struct rules_loader *loader, const struct rules_node *node);

#endif
