/* SPDX-License-Identifier: Apache-2.0 */
/* From descriptors to nodes, rules and limits, with the original's checks in the original's order.
 *
 * What the original does not have is under one key of a descriptor, `weir:`, because the original
 * refuses keys that it does not know; see docs/envoy.md.
 */
#ifndef WEIR_FEATURE_ENVOY_RULES_COMPILE_H
#define WEIR_FEATURE_ENVOY_RULES_COMPILE_H

#include "feature/envoy/rules/decode.h"

/* Adds one file's descriptors to the configuration. */
void envoy_compile(struct envoy_loader *loader, const struct envoy_source_file *file);

#endif
