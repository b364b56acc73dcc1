/* SPDX-License-Identifier: Apache-2.0 */
/* What Envoy's files become; see envoy.h. Everything lives in the arena of its struct weir_envoy,
 * but for the tables of words.
 *
 *   domains: name ─▶ node        nodes: (node, "key_value" or "key") ─▶ node
 */
#ifndef WEIR_RULES_ENVOY_COMPILED_H
#define WEIR_RULES_ENVOY_COMPILED_H

#include <stdatomic.h>

#include "rules/arena.h"
#include "rules/envoy/envoy.h"
#include "rules/envoy/yaml.h"
#include "rules/string_map.h"

/* Deeper descriptors are refused: their YAML would be, too (RULES_FIRST_DEPTH_MAX). */
#define ENVOY_LEVELS_MAX 64
/* Limits of one descriptor: its rate_limit and those of `weir: limits`. */
#define ENVOY_LIMITS_MAX 8
/* Rules whose metadata one response merges. */
#define ENVOY_METADATA_MAX 64
/* The keys of all limits begin with "<algorithm>-<seconds>s#<index>". */
#define ENVOY_PREFIX_MAX 48

enum envoy_charge {
    ENVOY_CHARGE_ALWAYS,      /* denied hits count, as in the original */
    ENVOY_CHARGE_IF_ADMITTED, /* only if this limit admits them */
    ENVOY_CHARGE_IF_ALL,      /* only if the whole request is allowed */
};

struct envoy_limit {
    struct weir_limit limit;
    struct weir_bytes prefix; /* of its keys */
    uint32_t requests;
    uint8_t unit;
};

struct weir_envoy_rule {
    struct weir_bytes stat, name;
    struct envoy_limit *limits; /* none where it is unlimited */
    uint32_t limit_count, requests;
    uint64_t cost;
    const uint32_t *replaces; /* numbers of names */
    uint32_t replace_count, name_number, number;
    uint8_t unit, charge, on_store_error;
    bool unlimited, shadow, quota, detailed;
    const struct weir_envoy_value *metadata; /* NULL: none */
};

/* A value with a "*"; in the order of the files. */
struct envoy_pattern {
    const struct envoy_pattern *next;
    struct weir_bytes glob; /* of "key_value", for weir_glob_match */
    uint32_t node;
};

struct envoy_node {
    struct weir_envoy_rule *rule; /* NULL: no rate_limit */
    struct envoy_pattern *patterns, *last_pattern;
    struct weir_bytes composite; /* "key_value" */
    uint32_t children;
    bool value_to_metric, share_threshold;
};

struct weir_envoy {
    atomic_uint references;
    struct rules_arena arena;
    struct weir_envoy_options options;
    struct rules_string_map domains, words, names;
    struct envoy_node **nodes;
    struct weir_envoy_rule **rules;
    uint32_t node_count, node_room, rule_count, rule_room, domain_count, name_count;
    uint32_t metadata_values; /* of the largest metadata */
    uint32_t longest_stat;    /* bytes of the longest composite */
    uint32_t limits_max;      /* of one rule */
    const char *warnings[WEIR_ENVOY_WARNINGS_MAX];
    uint32_t warning_count;
    bool replaces, shares; /* some rule does; some descriptor has share_threshold */
};

/* --- Loading ---------------------------------------------------------------------------------- */

/* The files of a folder, sorted by name; freed together. */
struct envoy_folder {
    struct weir_envoy_file *files;
    uint32_t count;
    struct rules_arena arena;
};
/* Errors: WEIR_ERR_RULES (`error` says what cannot be read, or is too much), WEIR_ERR_MEMORY. */
int envoy_folder_read(struct envoy_folder *folder, const char *path, bool ignore_dot_files,
                      struct weir_envoy_error *error) __attribute__((warn_unused_result));
void envoy_folder_free(struct envoy_folder *folder);

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

/* One load. */
struct envoy_loader {
    struct weir_envoy *envoy;
    struct rules_arena scratch;
    struct weir_envoy_error *error;
    const char *file; /* with its prefix */
    bool failed, no_memory;
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

/* Reads one file's YAML: its keys first, then their values. */
void envoy_decode(struct envoy_loader *loader, const char *text, size_t size,
                  struct envoy_source_file *file);

/* Compiles one file that is read. */
void envoy_compile(struct envoy_loader *loader, const struct envoy_source_file *file);

/* Makes the limits of a rule: its rate_limit, and what `weir` says. `seconds` of its unit. */
void envoy_make_limits(struct envoy_loader *loader, const struct envoy_source *source,
                       struct weir_envoy_rule *rule);

/* How hits are charged where a rule does not say. */
uint8_t envoy_default_charge(const struct weir_envoy_options *options);

/* One limit more. `line`: of what asked for it, 0: a rate_limit. */
void envoy_add_limit(struct envoy_loader *loader, struct weir_envoy_rule *rule,
                     const struct weir_limit_spec *spec, uint32_t requests, uint8_t unit,
                     uint32_t line);

/* A mapping as a google.protobuf.Struct; NULL: it is empty, or it was refused. */
const struct weir_envoy_value *envoy_metadata(struct envoy_loader *loader,
                                              const struct rules_node *node);

/* Where a name stands among `count` of them; `count`: nowhere. */
uint32_t envoy_name_at(const struct weir_bytes *names, uint32_t count, struct weir_bytes name);

/* The unit that a word names, of any case; WEIR_ENVOY_UNKNOWN: none. */
uint8_t envoy_unit_of(struct weir_bytes word);
uint32_t envoy_unit_seconds(uint32_t unit); /* 0: it is none */
const char *envoy_unit_name(uint32_t unit);

/* "<algorithm>-<seconds>s" of a window, "<algorithm>" of a bucket, "#<index>" behind it from the
 * second limit of a descriptor on. Returns the size. */
size_t envoy_prefix_write(char out[ENVOY_PREFIX_MAX], const struct weir_limit_spec *spec,
                          uint32_t index);

/* --- One request ------------------------------------------------------------------------------ */

/* Memory of a plan, rounded up to 16 bytes a piece; never NULL: weir_envoy_plan_size counted it. */
void *envoy_plan_alloc(struct weir_envoy_plan *plan, size_t size);
#define ENVOY_ALIGNED(size) (((size) + 15) & ~(size_t)15)

/* How one entry was matched. */
struct envoy_step {
    const struct envoy_node *node;
    bool by_pattern, by_value;
};

/* The path of one descriptor. */
struct envoy_walk {
    const struct weir_envoy_rule *rule; /* NULL: no limit */
    uint32_t steps;
    struct envoy_step path[ENVOY_LEVELS_MAX];
};
/* `room` has place for the longest "key_value" of the request. */
void envoy_walk(const struct weir_envoy *envoy, uint32_t domain,
                const struct weir_envoy_descriptor *descriptor, char *room,
                struct envoy_walk *walk);

/* The pattern's part that stands for a value: "foo*" of "wild_foo*" under the key "wild". */
struct weir_bytes envoy_pattern_value(const struct envoy_node *node, struct weir_bytes key);

/* The key of the counters of a walk that found a rule; `fixed` where it is the rule's own. */
struct weir_bytes envoy_stat(struct weir_envoy_plan *plan, const struct weir_envoy_descriptor *of,
                             const struct envoy_walk *walk, bool *fixed);
struct weir_bytes envoy_override_stat(struct weir_envoy_plan *plan,
                                      const struct weir_envoy_descriptor *of);
size_t envoy_stat_size(const struct weir_envoy *envoy, const struct weir_envoy_request *request);

/* Hash of a part's key, and where states are elsewhere its text, of at most ENVOY_KEY_TEXT_MAX
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

/* The dynamic metadata of a response; the sizes of what it takes. `passed[i]`: descriptor i is not
 * over its limit. */
const struct weir_envoy_value *envoy_dynamic_metadata(struct weir_envoy_plan *plan,
                                                      const struct weir_envoy_status *statuses);
size_t envoy_dynamic_size(const struct weir_envoy *envoy, const struct weir_envoy_request *request);

#endif
