/* SPDX-License-Identifier: Apache-2.0 */
/* From Envoy's descriptors to nodes and rules, with the original's checks in the original's order;
 * see compiled.h */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/bytes.h"
#include "rules/division.h"
#include "rules/envoy/compiled.h"

static const struct {
    const char *name;
    uint32_t seconds;
} units[WEIR_ENVOY_UNITS] = {
    [WEIR_ENVOY_UNKNOWN] = {"UNKNOWN", 0},     [WEIR_ENVOY_SECOND] = {"SECOND", 1},
    [WEIR_ENVOY_MINUTE] = {"MINUTE", 60},      [WEIR_ENVOY_HOUR] = {"HOUR", 3600},
    [WEIR_ENVOY_DAY] = {"DAY", 86400},         [WEIR_ENVOY_MONTH] = {"MONTH", 30 * 86400},
    [WEIR_ENVOY_YEAR] = {"YEAR", 365 * 86400}, [WEIR_ENVOY_WEEK] = {"WEEK", 7 * 86400},
};

uint8_t envoy_unit_of(struct weir_bytes word)
{
    for (unsigned i = WEIR_ENVOY_SECOND; i < WEIR_ENVOY_UNITS; i++)
        if (word.size == strlen(units[i].name) &&
            strncasecmp(word.data, units[i].name, word.size) == 0)
            return (uint8_t)i;
    return WEIR_ENVOY_UNKNOWN;
}

uint32_t envoy_unit_seconds(uint32_t unit)
{
    return unit < WEIR_ENVOY_UNITS ? units[unit].seconds : 0;
}

const char *envoy_unit_name(uint32_t unit)
{
    return unit < WEIR_ENVOY_UNITS ? units[unit].name : "UNKNOWN";
}

static struct weir_bytes keep_text(struct envoy_loader *loader, struct weir_bytes text)
{
    const char *copy = rules_arena_copy(&loader->envoy->arena, text.data, text.size);
    loader->no_memory |= copy == NULL;
    return copy != NULL ? (struct weir_bytes){copy, text.size} : (struct weir_bytes){"", 0};
}

static char *put(char *out, struct weir_bytes text)
{
    if (text.size > 0)
        memcpy(out, text.data, text.size);
    return out + text.size;
}

/* "a" joined with "b" by one byte. */
static struct weir_bytes join(struct envoy_loader *loader, struct weir_bytes a, char by,
                              struct weir_bytes b)
{
    char *text = envoy_keep(loader, a.size + b.size + 2);
    if (text == NULL)
        return (struct weir_bytes){"", 0};
    char *end = put(text, a);
    *end++ = by;
    put(end, b);
    return (struct weir_bytes){text, a.size + b.size + 1};
}

/* --- Nodes ------------------------------------------------------------------------------------ */

static bool grow(void **list, uint32_t count, uint32_t *room)
{
    if (count < *room)
        return true;
    uint32_t more = *room == 0 ? 64 : *room * 2;
    void *larger = realloc(*list, more * sizeof(void *));
    if (larger == NULL)
        return false;
    *list = larger;
    *room = more;
    return true;
}

/* A new node's number; RULES_NONE when memory is out. */
static uint32_t add_node(struct envoy_loader *loader, struct weir_bytes composite)
{
    struct weir_envoy *envoy = loader->envoy;
    struct envoy_node *node = envoy_keep(loader, sizeof(*node));
    if (node == NULL || !grow((void **)&envoy->nodes, envoy->node_count, &envoy->node_room)) {
        loader->no_memory = true;
        return RULES_NONE;
    }
    node->composite = composite;
    envoy->nodes[envoy->node_count] = node;
    return envoy->node_count++;
}

static uint32_t find(const struct rules_string_map *words, uint32_t scope, struct weir_bytes text)
{
    return rules_string_map_find(words, scope, rules_text_hash(text.data, text.size), text.data,
                                 text.size);
}

static void add_word(struct envoy_loader *loader, struct rules_string_map *words, uint32_t scope,
                     struct weir_bytes text, uint32_t number)
{
    loader->no_memory |= !rules_string_map_add(words, scope, text.data, text.size, number);
}

/* A "*" is any run of bytes and a backslash is itself, which a glob has to be told. */
static void add_pattern(struct envoy_loader *loader, struct envoy_node *level,
                        struct weir_bytes composite, uint32_t number)
{
    struct envoy_pattern *pattern = envoy_keep(loader, sizeof(*pattern));
    char *glob = envoy_keep(loader, 2 * composite.size + 1);
    if (pattern == NULL || glob == NULL)
        return;
    size_t used = 0;
    for (size_t i = 0; i < composite.size; i++) {
        if (composite.data[i] == '\\')
            glob[used++] = '\\';
        glob[used++] = composite.data[i];
    }
    pattern->glob = (struct weir_bytes){glob, used};
    pattern->node = number;
    if (level->last_pattern != NULL)
        level->last_pattern->next = pattern;
    else
        level->patterns = pattern;
    level->last_pattern = pattern;
}

/* --- Rules ------------------------------------------------------------------------------------ */

static uint32_t name_number(struct envoy_loader *loader, struct weir_bytes name)
{
    struct weir_envoy *envoy = loader->envoy;
    uint32_t number = find(&envoy->names, 0, name);
    if (number == RULES_NONE) {
        number = envoy->name_count++;
        add_word(loader, &envoy->names, 0, keep_text(loader, name), number);
    }
    return number;
}

static void check_replaces(struct envoy_loader *loader, const struct envoy_source *source,
                           struct weir_envoy_rule *rule)
{
    uint32_t *replaces = envoy_keep(loader, (source->replace_count + 1) * sizeof(*replaces));
    for (uint32_t i = 0; replaces != NULL && i < source->replace_count; i++) {
        struct weir_bytes name = source->replaces[i];
        if (name.size == 0)
            envoy_fail(loader, "should not have an empty replaces entry");
        else if (weir_bytes_equal(name, source->name))
            envoy_fail(loader, "replaces should not contain name of same descriptor");
        else
            replaces[i] = name_number(loader, name);
    }
    rule->replaces = replaces;
    rule->replace_count = source->replace_count;
    loader->envoy->replaces |= source->replace_count > 0;
}

uint8_t envoy_default_charge(const struct weir_envoy_options *options)
{
    /* A share cannot be charged for what it did not admit. */
    uint8_t otherwise =
        options->leased && !options->redis_compat ? ENVOY_CHARGE_IF_ADMITTED : ENVOY_CHARGE_ALWAYS;
    return options->charge_if_allowed ? ENVOY_CHARGE_IF_ALL : otherwise;
}

static struct weir_envoy_rule *add_rule(struct envoy_loader *loader,
                                        const struct envoy_source *source, struct weir_bytes stat)
{
    struct weir_envoy *envoy = loader->envoy;
    uint8_t unit = envoy_unit_of(source->unit);
    if (source->unlimited && unit != WEIR_ENVOY_UNKNOWN) {
        envoy_fail(loader, "should not specify rate limit unit when unlimited");
    } else if (!source->unlimited && unit == WEIR_ENVOY_UNKNOWN) {
        envoy_fail(loader, "invalid rate limit unit '%.*s'", (int)source->unit.size,
                   source->unit.data);
    }
    struct weir_envoy_rule *rule = envoy_keep(loader, sizeof(*rule));
    if (rule == NULL || !grow((void **)&envoy->rules, envoy->rule_count, &envoy->rule_room)) {
        loader->no_memory = true;
        return NULL;
    }
    rule->stat = stat;
    rule->name = keep_text(loader, source->name);
    rule->requests = source->requests;
    rule->cost = 1;
    rule->unit = unit;
    rule->unlimited = source->unlimited;
    rule->shadow = source->shadow;
    rule->quota = source->quota;
    rule->detailed = source->detailed;
    rule->on_store_error = envoy->options.on_store_error;
    rule->charge = envoy_default_charge(&envoy->options);
    rule->name_number = source->name.size > 0 ? name_number(loader, source->name) : RULES_NONE;
    check_replaces(loader, source, rule);
    rule->number = envoy->rule_count;
    envoy->rules[envoy->rule_count++] = rule;
    return rule;
}

size_t envoy_prefix_write(char out[ENVOY_PREFIX_MAX], const struct weir_limit_spec *spec,
                          uint32_t index)
{
    bool window = spec->algorithm == WEIR_FIXED_WINDOW || spec->algorithm == WEIR_SLIDING_WINDOW ||
                  spec->algorithm == WEIR_SLIDING_LOG;
    int used = snprintf(out, ENVOY_PREFIX_MAX, "%s", weir_algorithm_name(spec->algorithm));
    if (window) {
        used += snprintf(out + used, ENVOY_PREFIX_MAX - (size_t)used, "-%llus",
                         (unsigned long long)(spec->window_ns / 1000000000));
    }
    if (index > 0)
        used += snprintf(out + used, ENVOY_PREFIX_MAX - (size_t)used, "#%u", index);
    return (size_t)used;
}

void envoy_add_limit(struct envoy_loader *loader, struct weir_envoy_rule *rule,
                     const struct weir_limit_spec *spec, uint32_t requests, uint8_t unit,
                     uint32_t line)
{
    struct envoy_limit *limit = &rule->limits[rule->limit_count];
    struct weir_reason reason = {{0}};
    char prefix[ENVOY_PREFIX_MAX];
    if (weir_limit_init(&limit->limit, spec, &reason) < 0) {
        envoy_fail(loader, "weir: line %u: %s", line, reason.text);
        return;
    }
    limit->limit.name = WEIR_ENVOY_LIMIT_NAME;
    if (loader->envoy->options.nodes > 1) {
        struct weir_limit *part = envoy_keep(loader, sizeof(*part));
        if (part == NULL)
            return;
        weir_limit_divide(&limit->limit, loader->envoy->options.nodes, part);
        limit->limit.local = part;
    }
    size_t size = envoy_prefix_write(prefix, &limit->limit.spec, rule->limit_count);
    limit->prefix = keep_text(loader, (struct weir_bytes){prefix, size});
    limit->requests = requests;
    limit->unit = unit;
    rule->limit_count++;
    if (rule->limit_count > loader->envoy->limits_max)
        loader->envoy->limits_max = rule->limit_count;
}

/* --- Descriptors ------------------------------------------------------------------------------ */

static void load_level(struct envoy_loader *loader, uint32_t level, struct weir_bytes path,
                       const struct envoy_source *sources, uint32_t count, uint32_t depth);

static void check_share(struct envoy_loader *loader, const struct envoy_source *source,
                        struct weir_bytes composite)
{
    if (source->share_threshold && memchr(composite.data, '*', composite.size) == NULL) {
        envoy_fail(loader,
                   "share_threshold can only be used with wildcard values (containing '*'), but "
                   "found key '%.*s'",
                   (int)composite.size, composite.data);
    }
}

static void load_descriptor(struct envoy_loader *loader, uint32_t level, struct weir_bytes path,
                            const struct envoy_source *source, uint32_t depth)
{
    struct weir_envoy *envoy = loader->envoy;
    if (source->key.size == 0) {
        envoy_fail(loader, "descriptor has empty key");
        return;
    }
    struct weir_bytes composite = source->value.size > 0
                                      ? join(loader, source->key, '_', source->value)
                                      : keep_text(loader, source->key);
    struct weir_bytes stat = join(loader, path, '.', composite);
    if (loader->no_memory)
        return;
    if (find(&envoy->words, level, composite) != RULES_NONE) {
        envoy_fail(loader, "duplicate descriptor composite key '%.*s'", (int)stat.size, stat.data);
        return;
    }
    struct weir_envoy_rule *rule = source->has_limit ? add_rule(loader, source, stat) : NULL;
    check_share(loader, source, composite);
    const struct weir_envoy_value *metadata =
        source->metadata != NULL ? envoy_metadata(loader, source->metadata) : NULL;
    if (rule != NULL && !loader->failed && !loader->no_memory) {
        rule->metadata = metadata;
        envoy_make_limits(loader, source, rule);
    } else if (rule == NULL && source->weir != NULL) {
        envoy_fail(loader, "weir: line %u: a descriptor with this key needs a rate_limit",
                   source->weir->line);
    }
    uint32_t number = add_node(loader, composite);
    if (loader->failed || loader->no_memory)
        return;
    struct envoy_node *node = envoy->nodes[number], *parent = envoy->nodes[level];
    node->rule = rule;
    node->value_to_metric = source->value_to_metric;
    node->share_threshold = source->share_threshold;
    envoy->shares |= source->share_threshold;
    parent->children++;
    if (memchr(composite.data, '*', composite.size) != NULL)
        add_pattern(loader, parent, composite, number);
    add_word(loader, &envoy->words, level, composite, number);
    if (composite.size > envoy->longest_stat)
        envoy->longest_stat = (uint32_t)composite.size;
    load_level(loader, number, stat, source->children, source->child_count, depth + 1);
}

static void load_level(struct envoy_loader *loader, uint32_t level, struct weir_bytes path,
                       const struct envoy_source *sources, uint32_t count, uint32_t depth)
{
    if (count > 0 && depth > ENVOY_LEVELS_MAX)
        envoy_fail(loader, "descriptors are nested deeper than %d", ENVOY_LEVELS_MAX);
    for (uint32_t i = 0; i < count && !loader->failed && !loader->no_memory; i++)
        load_descriptor(loader, level, path, &sources[i], depth);
}

void envoy_compile(struct envoy_loader *loader, const struct envoy_source_file *file)
{
    struct weir_envoy *envoy = loader->envoy;
    loader->file = file->name;
    if (file->domain.size == 0) {
        envoy_fail(loader, "config file cannot have empty domain");
        return;
    }
    uint32_t number = find(&envoy->domains, 0, file->domain);
    if (number != RULES_NONE && !envoy->options.merge_domains) {
        envoy_fail(loader, "duplicate domain '%.*s' in config file", (int)file->domain.size,
                   file->domain.data);
        return;
    }
    struct weir_bytes domain = keep_text(loader, file->domain);
    if (number == RULES_NONE && !loader->no_memory) {
        number = add_node(loader, domain);
        if (number != RULES_NONE) {
            add_word(loader, &envoy->domains, 0, domain, number);
            envoy->domain_count++;
        }
    }
    if (!loader->no_memory)
        load_level(loader, number, domain, file->descriptors, file->count, 1);
}
