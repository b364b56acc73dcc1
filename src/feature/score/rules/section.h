/* SPDX-License-Identifier: Apache-2.0 */
/* The section `score:` of a rules file, and `by_class` of a limit. */
#ifndef WEIR_FEATURE_SCORE_RULES_SECTION_H
#define WEIR_FEATURE_SCORE_RULES_SECTION_H

#include "feature/score/rules/score.h"
#include "rules/load/keyword.h"

extern const struct rules_section rules_section_score;

/* Takes the value of the key. Comes before the limits, and after the lists of `standing`. */
void rules_load_score(struct rules_loader *loader, const struct rules_node *node);

/* `by_class` of a limit; `fields` are those of the limit. */
void rules_load_by_class(struct rules_loader *loader, const struct rules_field *fields,
                         struct rules_rule *rule);

#endif
