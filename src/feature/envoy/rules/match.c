/* SPDX-License-Identifier: Apache-2.0 */
/* see match.h */
#include "feature/envoy/rules/match.h"
#include <string.h>

#include "feature/envoy/rules/compiled.h"
#include "rules/match/pattern.h"

static bool begins(struct weir_bytes text, struct weir_bytes with)
{
    return text.size >= with.size && memcmp(text.data, with.data, with.size) == 0;
}

static uint32_t find(const struct weir_envoy *envoy, uint32_t level, const char *text, size_t size)
{
    return rules_string_map_find(&envoy->words, level, rules_text_hash(text, size), text, size);
}

static uint32_t find_pattern(const struct envoy_node *level, struct weir_bytes text)
{
    for (const struct envoy_pattern *at = level->patterns; at; at = at->next)
        if (weir_glob_match(at->glob, text))
            return at->node;
    return RULES_NONE;
}

/* One entry: literal, pattern, bare key. Returns the number of the node, or RULES_NONE. */
static uint32_t step(const struct weir_envoy *envoy, uint32_t level,
                     const struct weir_envoy_entry *entry, char *room, struct envoy_step *out)
{
    struct weir_bytes text = {room, entry->key.size + 1 + entry->value.size};
    memcpy(room, entry->key.data, entry->key.size);
    room[entry->key.size] = '_';
    memcpy(room + entry->key.size + 1, entry->value.data, entry->value.size);
    out->by_pattern = false;
    out->by_value = true;
    uint32_t number = find(envoy, level, text.data, text.size);
    if (number == RULES_NONE && envoy->nodes[level]->patterns) {
        number = find_pattern(envoy->nodes[level], text);
        out->by_pattern = number != RULES_NONE;
    }
    if (number == RULES_NONE) {
        number = find(envoy, level, entry->key.data, entry->key.size);
        out->by_value = false;
    }
    out->node = number != RULES_NONE ? envoy->nodes[number] : NULL;
    return number;
}

void envoy_walk(const struct weir_envoy *envoy, uint32_t domain,
                const struct weir_envoy_descriptor *descriptor, char *room, struct envoy_walk *walk)
{
    uint32_t level = domain;
    walk->rule = NULL;
    walk->steps = 0;
    for (uint32_t i = 0; i < descriptor->entry_count; i++) {
        /* The tree is no deeper than the path has room: a node that deep has no children. */
        level = step(envoy, level, &descriptor->entries[i], room, &walk->path[i]);
        if (level == RULES_NONE)
            return;
        walk->steps = i + 1;
        if (i + 1 == descriptor->entry_count)
            walk->rule = walk->path[i].node->rule;
        else if (walk->path[i].node->children == 0)
            return;
    }
}

struct weir_bytes envoy_pattern_value(const struct envoy_node *node, struct weir_bytes key)
{
    struct weir_bytes text = node->composite;
    if (begins(text, key) && text.size > key.size && text.data[key.size] == '_')
        return (struct weir_bytes){text.data + key.size + 1, text.size - key.size - 1};
    return text;
}

/* --- Keys of counters ------------------------------------------------------------------------- */

struct writer {
    char *start, *end;
};

static void put_text(struct writer *writer, struct weir_bytes text)
{
    if (text.size > 0)
        memcpy(writer->end, text.data, text.size);
    writer->end += text.size;
}

static void put(struct writer *writer, char before, struct weir_bytes text)
{
    *writer->end++ = before;
    put_text(writer, text);
}

static struct writer begin(struct weir_envoy_plan *plan, size_t size)
{
    char *start = envoy_plan_alloc(plan, size);
    struct writer writer = {start, start};
    struct weir_bytes domain = plan->request->domain;
    memcpy(start, domain.data, domain.size);
    writer.end += domain.size;
    return writer;
}

/* The most bytes of a descriptor's key: each value, or the pattern in its place. */
static size_t descriptor_stat_size(const struct weir_envoy *envoy, struct weir_bytes domain,
                                   const struct weir_envoy_descriptor *of)
{
    size_t size = domain.size + 1;
    for (uint32_t i = 0; i < of->entry_count; i++) {
        struct weir_bytes key = of->entries[i].key, value = of->entries[i].value;
        size +=
            key.size + 2 + (value.size > envoy->longest_stat ? value.size : envoy->longest_stat);
    }
    return size;
}

size_t envoy_stat_size(const struct weir_envoy *envoy, const struct weir_envoy_request *request)
{
    size_t size = 0;
    for (uint32_t i = 0; i < request->descriptor_count; i++) {
        size +=
            ENVOY_ALIGNED(descriptor_stat_size(envoy, request->domain, &request->descriptors[i]));
    }
    return size;
}

/* The value of one entry, as the key has it; data == NULL: none. */
static struct weir_bytes value_shown(const struct weir_envoy_rule *rule, bool shares,
                                     const struct envoy_step *at,
                                     const struct weir_envoy_entry *entry)
{
    struct weir_bytes none = {NULL, 0};
    bool shared = at->by_pattern && at->node->share_threshold;
    if (shared)
        return envoy_pattern_value(at->node, entry->key);
    if (rule->detailed) {
        /* Without shared values, the original puts a "_" even where there is no value. */
        struct weir_bytes empty = {shares ? NULL : "", 0};
        return entry->value.size > 0 ? entry->value : empty;
    }
    if (at->by_pattern && !at->node->value_to_metric)
        return envoy_pattern_value(at->node, entry->key);
    bool shown = at->by_value || at->node->value_to_metric;
    return shown && entry->value.size > 0 ? entry->value : none;
}

struct weir_bytes envoy_stat(struct weir_envoy_plan *plan, const struct weir_envoy_descriptor *of,
                             const struct envoy_walk *walk, bool *fixed)
{
    bool shares = false;
    *fixed = !walk->rule->detailed;
    for (uint32_t i = 0; i < walk->steps; i++) {
        const struct envoy_step *at = &walk->path[i];
        shares = shares || (at->by_pattern && at->node->share_threshold);
        /* A "*" in the key itself: the request's key comes before the pattern. */
        bool strange = at->by_pattern && envoy_pattern_value(at->node, of->entries[i].key).size ==
                                             at->node->composite.size;
        *fixed = *fixed && !at->node->value_to_metric && !strange;
    }
    if (*fixed)
        return walk->rule->stat;
    struct writer writer =
        begin(plan, descriptor_stat_size(plan->envoy, plan->request->domain, of));
    for (uint32_t i = 0; i < walk->steps; i++) {
        struct weir_bytes value = value_shown(walk->rule, shares, &walk->path[i], &of->entries[i]);
        put(&writer, '.', of->entries[i].key);
        if (value.data)
            put(&writer, '_', value);
    }
    return (struct weir_bytes){writer.start, (size_t)(writer.end - writer.start)};
}

struct weir_bytes envoy_override_stat(struct weir_envoy_plan *plan,
                                      const struct weir_envoy_descriptor *of)
{
    struct writer writer =
        begin(plan, descriptor_stat_size(plan->envoy, plan->request->domain, of));
    /* As the original: "domain." before anything, and a dot before each later part. */
    *writer.end++ = '.';
    const char *first = writer.end;
    for (uint32_t i = 0; i < of->entry_count; i++) {
        if (writer.end > first)
            *writer.end++ = '.';
        put_text(&writer, of->entries[i].key);
        if (of->entries[i].value.size > 0)
            put(&writer, '_', of->entries[i].value);
    }
    return (struct weir_bytes){writer.start, (size_t)(writer.end - writer.start)};
}
