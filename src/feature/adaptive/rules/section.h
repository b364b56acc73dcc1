/* SPDX-License-Identifier: Apache-2.0 */
/* `adaptive`: the controllers of a file, and which limits follow them. See
 * feature/adaptive/rules/limit.h. */
#ifndef WEIR_FEATURE_ADAPTIVE_RULES_SECTION_H
#define WEIR_FEATURE_ADAPTIVE_RULES_SECTION_H

#include "rules/load/keyword.h"

extern const struct rules_section rules_section_adaptive;

/* The section of the file; before the limits. */
void rules_load_adaptive(struct rules_loader *loader, const struct rules_node *node);

/* Room for as many limits that follow a controller as the file has limits. */
void rules_load_adaptive_room(struct rules_loader *loader, size_t limits);

/* `adaptive` of a limit whose rates are loaded already. */
void rules_load_limit_adaptive(struct rules_loader *loader, const struct rules_field *fields,
                               struct rules_rule *rule);

#endif
