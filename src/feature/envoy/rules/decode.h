/* SPDX-License-Identifier: Apache-2.0 */
/* Reading one of Envoy's files, in two passes as the original does: first all keys, then the values
 * by their types. */
#ifndef WEIR_FEATURE_ENVOY_RULES_DECODE_H
#define WEIR_FEATURE_ENVOY_RULES_DECODE_H

#include "feature/envoy/rules/loader.h"

/* A descriptor as its file has it. */
struct envoy_source {
    struct weir_bytes key, value, unit, name;
    uint32_t requests, replace_count, child_count;
    const struct weir_bytes *replaces;
    struct envoy_source *children;
    const struct rules_node *metadata, *weir;
    bool has_limit, unlimited, shadow, quota, detailed, value_to_metric, share_threshold;
};

struct envoy_source_file {
    const char *name; /* with its prefix, as in messages */
    struct weir_bytes domain;
    struct envoy_source *descriptors;
    uint32_t count;
};

/* Reads one file, YAML or a tree that its maker has: its keys first, then their values. */
void envoy_decode(struct envoy_loader *loader, const struct weir_envoy_file *from,
                  struct envoy_source_file *file);

#endif
