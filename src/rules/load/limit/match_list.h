/* SPDX-License-Identifier: Apache-2.0 */
/* `list` in a match: the lists of `standing`, by their names. */
#ifndef WEIR_RULES_LOAD_LIMIT_MATCH_LIST_H
#define WEIR_RULES_LOAD_LIMIT_MATCH_LIST_H

#include "rules/load/fields.h"

/* The name of a list: what its `name` says, or its file's name without folder and extension. The
 * list is the next one of the settings. False after a problem. */
bool rules_name_list(struct rules_loader *loader, const struct rules_node *file,
                     const struct rules_node *name);

/* Fills a part of a match from `NAME`, `[NAME, NAME]` or `{ not: … }` of these, with all that their
 * files say. The section `standing` is loaded. False after a problem. */
bool rules_load_match_list(struct rules_loader *loader, const struct rules_node *node,
                           struct rules_part *part);

#endif
