/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration of envoyproxy/ratelimit, as weir's limits.
 *
 * Its YAML files are read unchanged (docs/envoy.md lists every key) and compile into ordinary
 * limits: an epoch-aligned fixed_window each, unless a descriptor's `weir:` key says otherwise. A
 * ShouldRateLimit request becomes checks, those become decisions like any other, and their outcomes
 * become the response.
 *
 *   files ─▶ weir_envoy_load ─▶ struct weir_envoy        immutable, shared, counted references
 *   request ─▶ weir_envoy_plan_make ─▶ struct weir_envoy_plan    which limit, which cost
 *              weir_envoy_plan_fill ─▶ checks of one decision after the other
 *              weir_envoy_plan_take ◀─ their outcomes
 *              weir_envoy_respond   ─▶ struct weir_envoy_response, and what to count
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
 * Memory: about 400 bytes a descriptor. Threads: immutable but for weir_envoy_prepare; a plan
 * belongs to one thread.
 */
#ifndef WEIR_RULES_ENVOY_ENVOY_H
#define WEIR_RULES_ENVOY_ENVOY_H

#include "core/check.h"
#include "core/envoy.h"
#include "rules/envoy/options.h"
#include "rules/rules.h"

struct weir_envoy;

/* Why a configuration was refused, in the original's words: "config.basic.yaml: descriptor has
 * empty key". Longer texts are cut. */
#define WEIR_ENVOY_ERROR_MAX 1024
struct weir_envoy_error {
    char text[WEIR_ENVOY_ERROR_MAX];
};

/* --- Loading ---------------------------------------------------------------------------------- */

struct weir_envoy_file {
    const char *name; /* as in messages */
    const char *text;
    size_t size;
};

/* Compiles files, in their order. One reference is the caller's. Errors: WEIR_ERR_RULES with
 * `error` filled, WEIR_ERR_MEMORY. */
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

/* How many; a configuration without domains is legal, but healthy only where nobody asks for more.
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

/* --- One request ------------------------------------------------------------------------------ */

/* One limit as it stands in the files; its number is below weir_envoy_limit_count. */
struct weir_envoy_rule;
uint32_t weir_envoy_rule_number(const struct weir_envoy_rule *rule);

/* What is to be done for one descriptor. */
struct weir_envoy_item {
    const struct weir_envoy_rule *rule; /* NULL: no limit, or an override */
    const struct weir_limit *override;  /* of the request; NULL: none */
    struct weir_bytes stat;             /* the key of its counters; data == NULL: nothing counts */
    uint64_t hits;
    const struct weir_bytes *patterns; /* one an entry: stands for its value where data != NULL;
                                          NULL: none does */
    uint32_t part, parts;
    bool unlimited, fixed_stat; /* fixed_stat: `stat` is the rule's own */
};

/* One limit of one item: becomes one check. */
struct weir_envoy_part {
    const struct weir_limit *limit;
    uint64_t cost, now_ns;
    uint64_t used; /* of its limit, before this request; a fixed window may be over it */
    struct weir_report report;
    uint32_t item;
    uint8_t flags, on_store_error, op, index; /* index: of the limit in its rule */
    uint8_t verdict;
    int8_t error;
};

/* Of its limits, in keys elsewhere: no limit of the rules file can be called so. */
#define WEIR_ENVOY_LIMIT_NAME "@envoy"

struct weir_envoy_plan {
    const struct weir_envoy *envoy;
    const struct weir_envoy_request *request;
    struct weir_envoy_item *items; /* one a descriptor */
    struct weir_envoy_part *parts;
    uint32_t part_count;
    uint32_t decisions;  /* that its parts take */
    uint32_t filled;     /* parts that are in a decision */
    bool refunds;        /* some hits are given back */
    bool unknown_domain; /* to be counted */
    bool together;       /* one atomic decision */
    bool overrides;      /* some descriptor brings its own limit */
    char *memory;        /* what is left of it */
};

/* Gives the compiled limit of an override, or NULL and `reason`: the server knows the store. */
typedef const struct weir_limit *(*weir_envoy_override_fn)(void *context, uint32_t requests,
                                                           uint32_t seconds,
                                                           struct weir_reason *reason);

/* The most limits that one descriptor may meet; at least 1. */
uint32_t weir_envoy_limits_max(const struct weir_envoy *envoy);

/* What is wrong with a request whatever the configuration says: WEIR_ERR_SYNTAX (no domain, no
 * descriptor), WEIR_ERR_TOO_LARGE (too many descriptors). */
int weir_envoy_request_check(const struct weir_envoy_request *request, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* The bytes that a plan of a request that was checked may need. */
size_t weir_envoy_plan_size(const struct weir_envoy *envoy,
                            const struct weir_envoy_request *request);

/* Matches all descriptors. `memory` (aligned to 16) has weir_envoy_plan_size bytes and stays with
 * the plan, as do `envoy` and `request`. Errors: WEIR_ERR_RANGE (an override without a unit, or
 * beside another limit of the same state where all are charged together), WEIR_ERR_TOO_LARGE (too
 * many limits to be decided together), WEIR_ERR_FULL (no room for an override's limit); `reason`
 * has the text for the client. */
int weir_envoy_plan_make(struct weir_envoy_plan *plan, const struct weir_envoy *envoy,
                         const struct weir_envoy_request *request, void *memory,
                         weir_envoy_override_fn override, void *context, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* Puts the next parts into a decision (room for WEIR_CHECKS_MAX checks): op, policy, checks, count.
 * Key texts, which only stores elsewhere need, stand in the plan's memory; `secret` is what keys
 * are hashed with; refunds are of what was charged in the window of `now_ns`, and so, with
 * redis_compat, are counters: then it is the wall clock's. Returns the number of the first part, to
 * be given to weir_envoy_plan_take; -1: there are no more. */
long weir_envoy_plan_fill(struct weir_envoy_plan *plan, struct weir_decision *decision,
                          const uint64_t secret[2], uint64_t now_ns);

/* Takes the outcomes of a finished decision. */
void weir_envoy_plan_take(struct weir_envoy_plan *plan, long first,
                          const struct weir_decision *decision);

/* What one descriptor adds to its counters, in the original's way. */
struct weir_envoy_tally {
    uint64_t total_hits, over_limit, near_limit, over_limit_with_local_cache, within_limit,
        shadow_mode, total_negative_hits;
};
void weir_envoy_tally(const struct weir_envoy_plan *plan, uint32_t item,
                      struct weir_envoy_tally *tally);

/* The response of a plan whose parts are all taken; what it points at stands in the plan's memory,
 * in the request and in the configuration. *shadowed: SHADOW_MODE turned it. Errors: WEIR_ERR_STORE
 * where the store failed a limit that says so. */
int weir_envoy_respond(struct weir_envoy_plan *plan, struct weir_envoy_response *response,
                       bool *shadowed) __attribute__((warn_unused_result));

#endif
