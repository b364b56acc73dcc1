/* SPDX-License-Identifier: Apache-2.0 */
/* The section `regions:`, and `global:` of a limit. See feature/region/rules/region.h. */
#ifndef WEIR_FEATURE_REGION_RULES_SECTION_H
#define WEIR_FEATURE_REGION_RULES_SECTION_H

#include "rules/load/keyword.h"

extern const struct rules_section rules_section_regions, rules_section_global;

/* `regions`; the section `store`, if there is one, is loaded already. `field` has the section. The
 * Redis of this region becomes that of `store`. */
void rules_load_regions(struct rules_loader *loader, const struct rules_field *field);

/* After the limits: whether those whose homes may change say so. */
void rules_check_regions(struct rules_loader *loader, const struct rules_field *field);

/* `global` of a limit, whose key and rates are loaded already, and no part of a node is made yet.
 * Divides its rates. */
void rules_load_global(struct rules_loader *loader, const struct rules_field *fields,
                       struct rules_rule *rule);

/* Divides the rates of a candidate as those of its limit, which has `global`; `field` has the
 * candidate. */
void rules_divide_candidate(struct rules_loader *loader, const struct rules_field *field,
                            const struct rules_rule *rule, struct rules_rates *rates);

#endif
