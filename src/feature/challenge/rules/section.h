/* SPDX-License-Identifier: Apache-2.0 */
/* The section `challenge:` of a rules file. */
#ifndef WEIR_FEATURE_CHALLENGE_RULES_SECTION_H
#define WEIR_FEATURE_CHALLENGE_RULES_SECTION_H

#include "rules/load/keyword.h"

extern const struct rules_section rules_section_challenge;

/* Takes the value of the key. Comes before the limits, which may name the attribute. */
void rules_load_challenge(struct rules_loader *loader, const struct rules_node *node);

/* Whether a `difficulty` for each class has classes. Comes after all sections. */
void rules_check_difficulty(struct rules_loader *loader);

#endif
