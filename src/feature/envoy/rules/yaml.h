/* SPDX-License-Identifier: Apache-2.0 */
/* YAML as gopkg.in/yaml.v2 reads it into Go's types: what a scalar is, what it says when a value
 * does not fit, how Go prints it.
 *
 * Files for envoyproxy/ratelimit are written for that reader, and people look its messages up; so
 * the words here are its own ("yaml: unmarshal errors:\n  line 3: cannot unmarshal !!str `abc` into
 * uint32"). Trees come from rules_document_first.
 *
 * Source: decode.go and resolve.go of yaml.v2 2.4.0. Timestamps are taken for strings, which is
 * also what that reader makes of them where no Go type asks for a time; !!binary is refused.
 * Threads: pure.
 */
#ifndef WEIR_FEATURE_ENVOY_RULES_YAML_H
#define WEIR_FEATURE_ENVOY_RULES_YAML_H

#include "rules/load/document.h"

enum envoy_type {
    ENVOY_NULL,
    ENVOY_BOOL,
    ENVOY_INT,
    ENVOY_FLOAT,
    ENVOY_TEXT,
    ENVOY_LIST,
    ENVOY_MAP,
};

struct envoy_resolved {
    uint8_t type; /* enum envoy_type */
    bool boolean;
    bool negative; /* INT: -magnitude */
    uint64_t magnitude;
    double number;   /* FLOAT */
    const char *tag; /* for messages: "!!int" */
};

/* What a node is. Returns false when its tag and its text don't go together; `out->tag` then is
 * what the text is. */
bool envoy_resolve(const struct rules_node *node, struct envoy_resolved *out);

/* "<<": the mapping behind it stands for its fields. */
bool envoy_is_merge(const struct rules_node *key);

/* A text that grows at its end and is cut at its size. Always NUL-terminated. */
struct envoy_text {
    char *data;
    size_t used, size;
};
void envoy_text_add(struct envoy_text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void envoy_text_add_bytes(struct envoy_text *text, const char *data, size_t size);

/* As %v of package fmt prints it. */
void envoy_text_add_value(struct envoy_text *text, const struct rules_node *node);

/* "line 3: cannot unmarshal !!str `abc` into uint32". */
void envoy_text_add_mismatch(struct envoy_text *text, const struct rules_node *node,
                             const char *into);

#endif
