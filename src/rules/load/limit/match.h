/* SPDX-License-Identifier: Apache-2.0 */
/* Which requests a limit applies to: `match` of a limit, `paths` of the file. */
#ifndef WEIR_RULES_LOAD_LIMIT_MATCH_H
#define WEIR_RULES_LOAD_LIMIT_MATCH_H

#include "rules/load/keyword.h"

extern const struct rules_section rules_section_match, rules_section_paths;

void rules_load_match(struct rules_loader *loader, const struct rules_node *node,
                      struct rules_rule *rule);
void rules_load_paths(struct rules_loader *loader, const struct rules_node *node);

/* The atom of a literal of an attribute, made where it is new; RULES_NONE when memory is out.
 * `value` has to be kept. */
uint32_t rules_literal_atom(struct rules_loader *loader, uint16_t attribute,
                            struct weir_bytes value);

/* Compiles a pattern of paths, keeps it, and adds it to the file's: *atom. What it has of patterns
 * of other programs is reported at the node (foreign.h). Errors: as
 * weir_path_pattern_compile; WEIR_ERR_MEMORY, which is remembered. */
int rules_read_pattern(struct rules_loader *loader, const struct rules_node *node,
                       struct weir_bytes text, struct weir_path_pattern *pattern, uint32_t *atom,
                       struct weir_reason *reason) __attribute__((warn_unused_result));

/* For "path.NAME": the segment called NAME in each pattern of the limit's path, or -1. NULL after a
 * problem. */
const int8_t *rules_capture(struct rules_loader *loader, const struct rules_node *node,
                            struct weir_bytes name);

#endif
