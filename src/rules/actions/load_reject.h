/* SPDX-License-Identifier: Apache-2.0 */
/* `reject` of the file, and of a limit: see actions/reject.h. */
#ifndef WEIR_RULES_ACTIONS_LOAD_REJECT_H
#define WEIR_RULES_ACTIONS_LOAD_REJECT_H

#include "rules/load/keyword.h"

extern const struct rules_section rules_section_reject, rules_section_reject_all;

/* That of the file: before the limits, and after `headers`. */
void rules_load_reject_all(struct rules_loader *loader, const struct rules_node *node);

/* `field` has a value. */
void rules_load_reject(struct rules_loader *loader, const struct rules_field *field,
                       struct rules_rule *rule);

#endif
