/* SPDX-License-Identifier: Apache-2.0 */
/* `key` and `on_missing` of a limit. */
#ifndef WEIR_RULES_LOAD_KEY_H
#define WEIR_RULES_LOAD_KEY_H

#include "rules/load/fields.h"

/* Either node may be NULL. The match of the limit is loaded already: its patterns name captures. */
void rules_load_key(struct rules_loader *loader, const struct rules_node *key,
                    const struct rules_node *on_missing, struct rules_rule *rule);

#endif
