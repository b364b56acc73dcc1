/* SPDX-License-Identifier: Apache-2.0 */
/* `standing` of the file, and `by_standing` of a limit.
 *
 *   standing:
 *     by: [client.ip/64, user, org, header.x-api-key]
 *     file: standing.db
 *     lists: [{ file: badnets.txt, by: client.ip, level: suspended, reason: "listed network" }]
 *     answer: { suspended: { status: 403 }, revoked: { status: 403, body: "..." } }
 */
#ifndef WEIR_FEATURE_STANDING_RULES_SECTION_H
#define WEIR_FEATURE_STANDING_RULES_SECTION_H

#include "rules/load/keyword.h"

extern const struct rules_section rules_section_standing;

/* Call it after `identify` and `jwt`, which say what is secret, and before the limits. */
void rules_load_standing(struct rules_loader *loader, const struct rules_node *node);

/* A limit's scales; `fields` are those of limit_fields.h. The limit's rate is loaded already. */
void rules_load_by_standing(struct rules_loader *loader, const struct rules_field *fields,
                            struct rules_rule *rule);

#endif
