/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration of envoyproxy/ratelimit, as weir's limits.
 *
 * Its YAML files are read unchanged (docs/envoy.md lists every key) and compile into ordinary
 * limits: an epoch-aligned fixed_window each, unless a descriptor's `weir:` key says otherwise. A
 * ShouldRateLimit request becomes checks, those become decisions like any other, and their outcomes
 * become the response.
 *
 *   files ─▶ weir_envoy_load ─▶ struct weir_envoy        immutable, shared, counted references
 *   request ─▶ weir_envoy_plan_make ─▶ struct weir_envoy_plan    which limit, which cost (plan.h)
 *              weir_envoy_plan_fill ─▶ checks of one decision after the other
 *              weir_envoy_plan_take ◀─ their outcomes
 *              weir_envoy_respond   ─▶ struct weir_envoy_response, and what to count (respond.h)
 *
 * Matching (each descriptor by itself): one step a level and entry; the literal "key_value" first,
 * then the level's patterns in the order of the files, then "key" alone; the first that is there is
 * taken and never taken back. A limit counts only where the last entry ends.
 *
 * Keys. A counter is the domain with all entries of the request, not the rule: values under a
 * pattern or a bare key have counters of their own, unless `share_threshold` puts the pattern in
 * the value's place. The tuple that is hashed says how long each piece is, so (a=b)(c=d) and
 * (a=b_c_d) never meet, as they do in the original.
 *
 * Source: envoyproxy/ratelimit, src/config/config_impl.go, src/service/ratelimit.go and
 * src/limiter/base_limiter.go, whose texts of errors and rules of counting are kept.
 *
 * Memory: about 400 bytes a descriptor. Threads: immutable after weir_envoy_prepare.
 */
#ifndef WEIR_FEATURE_ENVOY_RULES_ENVOY_H
#define WEIR_FEATURE_ENVOY_RULES_ENVOY_H

#include "core/check.h"
#include "core/envoy.h"
#include "feature/envoy/rules/options.h"
#include "rules/rules.h"

struct weir_envoy;

/* Why a configuration was refused, in the original's words: "config.basic.yaml: descriptor has
 * empty key". Longer texts are cut. */
#define WEIR_ENVOY_ERROR_MAX 1024
struct weir_envoy_error {
    char text[WEIR_ENVOY_ERROR_MAX];
};

struct rules_node;
struct rules_arena;
struct weir_envoy_file;

/* Makes the tree of a file that is no YAML; *root and all below belong to `arena`. Errors: any,
 * with the reason; WEIR_ERR_MEMORY. */
typedef int (*weir_envoy_tree_fn)(struct rules_node **root, struct rules_arena *arena,
                                  const struct weir_envoy_file *file, struct weir_reason *reason);

struct weir_envoy_file {
    const char *name; /* as in messages */
    const char *text;
    size_t size;
    weir_envoy_tree_fn tree; /* NULL: the text is YAML */
};

/* Compiles files, in their order, which are of one kind. One reference is the caller's. Errors:
 * WEIR_ERR_RULES with `error` filled, WEIR_ERR_MEMORY. */
int weir_envoy_parse(struct weir_envoy **envoy, const struct weir_envoy_file *files, uint32_t count,
                     const struct weir_envoy_options *options, struct weir_envoy_error *error)
    __attribute__((warn_unused_result));

/* The same for all files in a folder and those below it, sorted by name. A folder that is not there
 * is an error; one without files is a configuration without domains, as in the original. Errors: as
 * weir_envoy_parse. */
int weir_envoy_load(struct weir_envoy **envoy, const char *folder,
                    const struct weir_envoy_options *options, struct weir_envoy_error *error)
    __attribute__((warn_unused_result));

/* Whether some limit fails, or denies, what the store does not decide; those of overrides too. */
bool weir_envoy_fails_without_store(const struct weir_envoy *envoy);

/* A number that changes when some file below `folder` does, or the folder itself is swapped: names,
 * sizes, times of change, inodes, through symbolic links. 0: it cannot be read. */
uint64_t weir_envoy_fingerprint(const char *folder);

struct weir_envoy *weir_envoy_ref(struct weir_envoy *envoy);
void weir_envoy_unref(struct weir_envoy *envoy);

/* Makes every limit known to a store, once, before the configuration is shared; `name` is where it
 * stands ("domain.key_value"). Stops at the first error and returns it. */
int weir_envoy_prepare(struct weir_envoy *envoy, weir_rules_prepare_fn prepare, void *context)
    __attribute__((warn_unused_result));

/* How many; a configuration without domains is legal, but healthy only unless `need_domains` is
 * set.
 */
uint32_t weir_envoy_domain_count(const struct weir_envoy *envoy);
uint32_t weir_envoy_limit_count(const struct weir_envoy *envoy);

/* What is legal and has no effect ("a.yaml: line 7: 'shadow_mode' has no effect in rate_limit"), at
 * most so many; NULL behind the last. */
#define WEIR_ENVOY_WARNINGS_MAX 20
const char *weir_envoy_warning(const struct weir_envoy *envoy, uint32_t index);

const struct weir_envoy_options *weir_envoy_options(const struct weir_envoy *envoy);

/* The lines of /rlconfig, in the order of the files: writes at most `size` bytes, returns how many
 * there are in all. */
size_t weir_envoy_dump(const struct weir_envoy *envoy, char *out, size_t size);

/* The name of all its limits, in keys of other stores: no limit of the rules file can have it. */
#define WEIR_ENVOY_LIMIT_NAME "@envoy"

/* One limit of the files; its number is below weir_envoy_limit_count. */
struct weir_envoy_rule;
uint32_t weir_envoy_rule_number(const struct weir_envoy_rule *rule);

/* The most limits that one descriptor may meet; at least 1. */
uint32_t weir_envoy_limits_max(const struct weir_envoy *envoy);

#endif
