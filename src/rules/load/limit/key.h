/* SPDX-License-Identifier: Apache-2.0 */
/* `key` and `on_missing` of a limit. */
#ifndef WEIR_RULES_LOAD_LIMIT_KEY_H
#define WEIR_RULES_LOAD_LIMIT_KEY_H

#include "rules/load/fields.h"

/* Either node may be NULL. The match of the limit is loaded already: its patterns name captures. */
void rules_load_key(struct rules_loader *loader, const struct rules_node *key,
                    const struct rules_node *on_missing, struct rules_rule *rule);

/* One attribute of a key; `what` is the name of the field. False after a problem. */
bool rules_load_key_part(struct rules_loader *loader, const struct rules_node *node,
                         const char *what, struct rules_key_part *part);

#endif
