/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of Envoy's counters: a tuple that is hashed, and a text for shared stores.
 *
 *   tuple    0 | size (1) | prefix | domain | for each entry: key, V or P, value or pattern
 *            domain, key, value: size (4) | bytes
 *   text     fixed_window-60s:domain|key=value,key=~pattern
 *
 * A limit of the rules file begins with the size of its name, which is never 0, so no tuple here is
 * one of its. The prefix says algorithm, window and place (compiled.h): as in the original,
 * two limits of the same unit that a request meets with the same entries are one counter, one of an
 * override included. In texts whatever could be read as syntax is percent-encoded; a text that does
 * not fit ends in "~" and 32 digits of the whole one's SHA-256, which is the same on all nodes.
 */
#ifndef WEIR_FEATURE_ENVOY_RULES_KEY_H
#define WEIR_FEATURE_ENVOY_RULES_KEY_H

#include "core/check.h"
#include "feature/envoy/rules/plan_memory.h"

/* Hash of a part's key, and with a shared store its text, of at most ENVOY_KEY_TEXT_MAX
 * bytes. */
#define ENVOY_KEY_TEXT_MAX 256
void envoy_key(struct weir_envoy_plan *plan, const struct weir_envoy_part *part,
               const uint64_t secret[2], struct weir_check *check);

/* The original's key in Redis, in place of the text: prefix, domain, entries, and the begin of the
 * window at `now_s`; its size, which is never less. */
size_t envoy_counter_size(const struct weir_envoy *envoy, const struct weir_envoy_request *request,
                          const struct weir_envoy_descriptor *of);
void envoy_counter_key(struct weir_envoy_plan *plan, const struct weir_envoy_part *part,
                       uint64_t now_s, struct weir_check *check);

#endif
