/* SPDX-License-Identifier: Apache-2.0 */
/* `priority` of the file, and `shed` of a limit: see feature/priority/rules/priority.h. */
#ifndef WEIR_FEATURE_PRIORITY_RULES_SECTION_H
#define WEIR_FEATURE_PRIORITY_RULES_SECTION_H

#include "rules/load/keyword.h"

extern const struct rules_section rules_section_priority;

/* After plans and paths, before limits. */
void rules_load_priority(struct rules_loader *loader, const struct rules_node *node);

/* `fields` are those of the limit; that of `shed` has a value. */
void rules_load_shed(struct rules_loader *loader, const struct rules_field *fields,
                     struct rules_rule *rule);

#endif
