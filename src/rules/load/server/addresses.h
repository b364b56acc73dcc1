/* SPDX-License-Identifier: Apache-2.0 */
/* Whose addresses mean what: `server.trusted_proxies` and `server.nat64`. */
#ifndef WEIR_RULES_LOAD_SERVER_ADDRESSES_H
#define WEIR_RULES_LOAD_SERVER_ADDRESSES_H

#include "rules/load/fields.h"

void rules_load_proxies(struct rules_loader *loader, const struct rules_node *node);
void rules_load_nat64(struct rules_loader *loader, const struct rules_node *node);

#endif
