/* SPDX-License-Identifier: Apache-2.0 */
/* The section `challenge:` of a rules file, and where its attribute may be named. */
#ifndef WEIR_RULES_CHALLENGE_SECTION_H
#define WEIR_RULES_CHALLENGE_SECTION_H

#include "rules/load/keyword.h"

extern const struct rules_section rules_section_challenge;

/* Takes the value of the key. Comes before the limits, which may name the attribute. */
void rules_load_challenge(struct rules_loader *loader, const struct rules_node *node);

/* Whether a `difficulty` for each class has classes. Comes after all sections. */
void rules_check_difficulty(struct rules_loader *loader);

/* Whether the attribute with this number may be named here: `challenge` needs the section. False
 * after a problem. */
bool rules_check_challenge(struct rules_loader *loader, const struct rules_node *node,
                           uint16_t attribute);

/* Whether the attribute `challenge` can have this value; false after a problem. */
bool rules_allow_challenge(struct rules_loader *loader, const struct rules_node *node,
                           uint16_t attribute, struct weir_bytes value);

#endif
