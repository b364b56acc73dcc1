/* SPDX-License-Identifier: Apache-2.0 */
/* What a rules file must have to name an attribute, and which values it can be compared with: the
 * functions `needs` and `allows` of the table of attributes. They look nothing up in that table, so
 * that the table can name them.
 */
#ifndef WEIR_RULES_LOAD_ATTRIBUTE_CHECKS_H
#define WEIR_RULES_LOAD_ATTRIBUTE_CHECKS_H

#include "rules/load/fields.h"

/* Whether the file has the section `standing`, which the attribute needs. False after a problem. */
bool rules_check_standing(struct rules_loader *loader, const struct rules_node *node,
                          uint16_t attribute);

/* The level of a name; `what` is the key. False after a problem. */
bool rules_read_level(struct rules_loader *loader, const struct rules_node *node, const char *what,
                      struct weir_bytes name, uint8_t *level);

/* Whether a literal can be the value of `method` (spelled in the right case), `plan`, `standing`;
 * false after a problem. */
bool rules_allow_method(struct rules_loader *loader, const struct rules_node *node,
                        uint16_t attribute, struct weir_bytes value);
bool rules_allow_plan(struct rules_loader *loader, const struct rules_node *node,
                      uint16_t attribute, struct weir_bytes value);
bool rules_allow_level(struct rules_loader *loader, const struct rules_node *node,
                       uint16_t attribute, struct weir_bytes value);

/* Whether the attribute with this number may be named here: `challenge` needs the section. False
 * after a problem. */
bool rules_check_challenge(struct rules_loader *loader, const struct rules_node *node,
                           uint16_t attribute);

/* Whether the attribute `challenge` can have this value; false after a problem. */
bool rules_allow_challenge(struct rules_loader *loader, const struct rules_node *node,
                           uint16_t attribute, struct weir_bytes value);

/* Whether the attribute with this number may be named here: those of the score need the section,
 * and no signal can read them. False after a problem. */
bool rules_check_score(struct rules_loader *loader, const struct rules_node *node,
                       uint16_t attribute);

/* Whether client.score or client.class can have this value; false after a problem. */
bool rules_check_score_value(struct rules_loader *loader, const struct rules_node *node,
                             uint16_t attribute, struct weir_bytes value);

#endif
