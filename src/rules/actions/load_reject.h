/* SPDX-License-Identifier: Apache-2.0 */
/* `reject` of a limit: see actions/reject.h. */
#ifndef WEIR_RULES_ACTIONS_LOAD_REJECT_H
#define WEIR_RULES_ACTIONS_LOAD_REJECT_H

#include "rules/load/keyword.h"

extern const struct rules_section rules_section_reject;

/* `field` has a value. */
void rules_load_reject(struct rules_loader *loader, const struct rules_field *field,
                       struct rules_rule *rule);

#endif
