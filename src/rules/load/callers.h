/* SPDX-License-Identifier: Apache-2.0 */
/* Who calls: `plans`, `default_plan`, `identify`, and `identities`, the callers kept in Redis. */
#ifndef WEIR_RULES_LOAD_CALLERS_H
#define WEIR_RULES_LOAD_CALLERS_H

#include "rules/load/keyword.h"

extern const struct rules_section rules_section_identities;
extern const char *const rules_unknown_words[], *const rules_repeated_words[]; /* up to a NULL */

void rules_load_plans(struct rules_loader *loader, const struct rules_node *plans,
                      const struct rules_node *default_plan);
/* `have_keys`: the file gives `keys` or `identities`, where API keys are looked up. */
void rules_load_identify(struct rules_loader *loader, const struct rules_node *identify,
                         bool have_keys);
void rules_load_identities(struct rules_loader *loader, const struct rules_node *node);

/* `on_unknown`, after `identify`. */
void rules_load_on_unknown(struct rules_loader *loader, const struct rules_node *node);

/* What repeated lines of credentials are, after all attributes are known. `node` is
 * `repeated_credentials`, or NULL. */
void rules_load_repeated(struct rules_loader *loader, const struct rules_node *node);

#endif
