/* SPDX-License-Identifier: Apache-2.0 */
/* `jwt`: how tokens are read and verified. See feature/identity/rules/jwt.h. */
#ifndef WEIR_RULES_LOAD_JWT_H
#define WEIR_RULES_LOAD_JWT_H

#include "rules/load/keyword.h"

extern const struct rules_section rules_section_jwt;

void rules_load_jwt(struct rules_loader *loader, const struct rules_node *node);

#endif
