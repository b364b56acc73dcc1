/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a name of an attribute is one that weir knows: built in, or declared in the rules file
 * (load/names.h). Rules files are checked by it when they are loaded, and requests by
 * unknown_names.h. */
#ifndef WEIR_RULES_KNOWN_NAMES_H
#define WEIR_RULES_KNOWN_NAMES_H

#include "rules/rules.h"

bool rules_is_built_in(struct weir_bytes name);
bool rules_is_declared(const struct weir_rules *rules, struct weir_bytes name);

/* The name that an unknown one may be a mistyping of: built in or declared; NULL: none. */
const char *rules_nearest_name(const struct weir_rules *rules, struct weir_bytes name);

#endif
