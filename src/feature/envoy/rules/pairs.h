/* SPDX-License-Identifier: Apache-2.0 */
/* Names and values of a mapping, such as tags and header fields.
 *
 * Threads: none of its own.
 */
#ifndef WEIR_FEATURE_ENVOY_RULES_PAIRS_H
#define WEIR_FEATURE_ENVOY_RULES_PAIRS_H

#include "feature/envoy/rules/options.h"
#include "rules/load/fields.h"

/* Reads the name (or else the value) of a pair of the key `what`, and keeps it. NULL: it is wrong,
 * and the problem is noted. */
typedef const char *(*envoy_pair_text)(struct rules_loader *loader, const struct rules_node *node,
                                       const char *what, bool is_name);

/* The pairs of a key, at most `most`, into `pairs`; none where the key is missing. Returns how many
 * there are; a pair with a problem is left out. */
uint32_t envoy_load_pairs(struct rules_loader *loader, const struct rules_field *field,
                          uint32_t most, envoy_pair_text read, struct weir_envoy_tag *pairs);

#endif
