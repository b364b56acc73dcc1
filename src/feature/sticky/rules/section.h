/* SPDX-License-Identifier: Apache-2.0 */
/* The section `sticky:`, and `per_node:` of a limit. See feature/sticky/rules/peers.h and
 * docs/distributed.md. */
#ifndef WEIR_FEATURE_STICKY_RULES_SECTION_H
#define WEIR_FEATURE_STICKY_RULES_SECTION_H

#include "rules/load/keyword.h"

extern const struct rules_section rules_section_sticky;

/* `sticky`, with the file that it names. `other` is the section `store` or `regions`, with which it
 * does not go; NULL: there is none. */
void rules_load_sticky(struct rules_loader *loader, const struct rules_field *field,
                       const struct rules_field *other);

/* Whether a limit has a home for each key, or counts at each node; its key and rates are loaded
 * already. `refused`: a keyword that a limit with a home cannot have; NULL: it has none. */
void rules_load_home(struct rules_loader *loader, const struct rules_field *fields,
                     const struct rules_field *refused, const struct rules_node *limit,
                     struct rules_rule *rule);

#endif
