/* SPDX-License-Identifier: Apache-2.0 */
/* The leaf of loading Envoy's files: the context of a load, its memory, its first error. */
#ifndef WEIR_FEATURE_ENVOY_RULES_LOADER_H
#define WEIR_FEATURE_ENVOY_RULES_LOADER_H

#include "feature/envoy/rules/compiled.h"
#include "feature/envoy/rules/yaml.h"

/* The context of one load. */
struct envoy_loader {
    struct weir_envoy *envoy;
    struct rules_arena scratch;
    struct weir_envoy_error *error;
    const char *file; /* with its prefix */
    bool failed, no_memory;
    uint64_t name_bytes;          /* of all descriptors, in full */
    uint32_t depth;               /* of the mappings that are being checked */
    struct envoy_text mismatches; /* of the file at hand: "\n  line …" for each */
};

/* The first one counts: "<file>: <message>". */
void envoy_fail(struct envoy_loader *loader, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* envoy_resolve, or a failure of the load. */
void envoy_resolve_or_fail(struct envoy_loader *loader, const struct rules_node *node,
                           struct envoy_resolved *value);

/* From the arena of the configuration, or from scratch; NULL (and remembered) when memory is out.
 */
void *envoy_keep(struct envoy_loader *loader, size_t size);
void *envoy_borrow(struct envoy_loader *loader, size_t size);

/* A copy of a text in the arena of the configuration; an empty text when memory is out. */
struct weir_bytes envoy_keep_text(struct envoy_loader *loader, struct weir_bytes text);

#endif
