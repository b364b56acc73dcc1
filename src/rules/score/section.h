/* SPDX-License-Identifier: Apache-2.0 */
/* The section `score:` of a rules file, `by_class` of a limit, and where the attributes
 * client.score and client.class may be named. */
#ifndef WEIR_RULES_SCORE_SECTION_H
#define WEIR_RULES_SCORE_SECTION_H

#include "rules/load/fields.h"
#include "rules/score/score.h"

/* Takes the value of the key. Comes before the limits, and after the lists of `standing`. */
void rules_load_score(struct rules_loader *loader, const struct rules_node *node);

/* `by_class` of a limit; `fields` are those of the limit. */
void rules_load_by_class(struct rules_loader *loader, const struct rules_field *fields,
                         struct rules_rule *rule);

/* Whether the attribute with this number may be named here: those of the score need the section,
 * and no signal can read them. False after a problem. */
bool rules_check_score(struct rules_loader *loader, const struct rules_node *node,
                       uint16_t attribute);

/* Whether client.score or client.class can have this value; false after a problem. */
bool rules_check_score_value(struct rules_loader *loader, const struct rules_node *node,
                             uint16_t attribute, struct weir_bytes value);

#endif
