/* SPDX-License-Identifier: Apache-2.0 */
/* A compiled configuration; see envoy.h. Everything lives in the arena of its struct weir_envoy,
 * except the tables of words.
 *
 *   domains: name ─▶ node        nodes: (node, "key_value" or "key") ─▶ node
 */
#ifndef WEIR_FEATURE_ENVOY_RULES_COMPILED_H
#define WEIR_FEATURE_ENVOY_RULES_COMPILED_H

#include <stdatomic.h>

#include "feature/envoy/rules/envoy.h"
#include "rules/arena.h"
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
    uint8_t mark; /* percent of use from which on requests are marked; 0: never */
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
    bool marks;            /* some rule has `mark` */
};

/* The unit that a word names, of any case; WEIR_ENVOY_UNKNOWN: none. */
uint8_t envoy_unit_of(struct weir_bytes word);
uint32_t envoy_unit_seconds(uint32_t unit); /* 0: it is none */
const char *envoy_unit_name(uint32_t unit);

/* How hits are charged where a rule does not say. */
uint8_t envoy_default_charge(const struct weir_envoy_options *options);

/* The index of a name among `count` of them; `count`: not found. */
uint32_t envoy_name_at(const struct weir_bytes *names, uint32_t count, struct weir_bytes name);

/* "<algorithm>-<seconds>s" of a window, "<algorithm>" of a bucket, "#<index>" behind it from the
 * second limit of a descriptor on. Returns the size. */
size_t envoy_prefix_write(char out[ENVOY_PREFIX_MAX], const struct weir_limit_spec *spec,
                          uint32_t index);

#endif
