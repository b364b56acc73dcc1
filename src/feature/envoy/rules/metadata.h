/* SPDX-License-Identifier: Apache-2.0 */
/* Metadata of descriptors: from YAML to google.protobuf.Struct. */
#ifndef WEIR_FEATURE_ENVOY_RULES_METADATA_H
#define WEIR_FEATURE_ENVOY_RULES_METADATA_H

#include "feature/envoy/rules/loader.h"

/* A mapping as a google.protobuf.Struct; NULL: it is empty, or it was refused. */
const struct weir_envoy_value *envoy_metadata(struct envoy_loader *loader,
                                              const struct rules_node *node);

#endif
