/* SPDX-License-Identifier: Apache-2.0 */
/* `envoy`: where envoyproxy/ratelimit's files are, and its settings. See
 * feature/envoy/rules/options.h. */
#ifndef WEIR_FEATURE_ENVOY_RULES_SECTION_H
#define WEIR_FEATURE_ENVOY_RULES_SECTION_H

#include "rules/load/keyword.h"

extern const struct rules_section rules_section_envoy;

/* The store is loaded already. */
void rules_load_envoy(struct rules_loader *loader, const struct rules_node *node);

#endif
