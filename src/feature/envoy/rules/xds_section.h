/* SPDX-License-Identifier: Apache-2.0 */
/* `xds` of `envoy`: a control plane that gives the configuration in place of a folder. */
#ifndef WEIR_FEATURE_ENVOY_RULES_XDS_SECTION_H
#define WEIR_FEATURE_ENVOY_RULES_XDS_SECTION_H

#include "feature/envoy/rules/options.h"
#include "rules/load/keyword.h"

extern const struct rules_section envoy_xds_section;

void envoy_load_xds(struct rules_loader *loader, const struct rules_node *node,
                    struct weir_xds_settings *xds);

/* Whether a stream by the one would be another one than by the other. */
bool weir_xds_settings_differ(const struct weir_xds_settings *a, const struct weir_xds_settings *b);

#endif
