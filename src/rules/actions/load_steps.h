/* SPDX-License-Identifier: Apache-2.0 */
/* `steps` of a limit: see actions/steps.h. */
#ifndef WEIR_RULES_ACTIONS_LOAD_STEPS_H
#define WEIR_RULES_ACTIONS_LOAD_STEPS_H

#include "rules/load/keyword.h"

extern const struct rules_section rules_section_step;

/* `fields` are those of the limit; that of the steps has a value. Rates and behaviour of the limit
 * are loaded already. */
void rules_load_steps(struct rules_loader *loader, const struct rules_field *fields,
                      struct rules_rule *rule);

#endif
