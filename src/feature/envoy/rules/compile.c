/* SPDX-License-Identifier: Apache-2.0 */
/* see compile.h */
#include "feature/envoy/rules/compile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/algorithm.h"
#include "core/bytes.h"
#include "feature/envoy/rules/metadata.h"
#include "rules/division.h"
#include "rules/problems.h"

/* Bytes of the full names of all descriptors. Each has those of the ones that it is in, so a small
 * file may make many of them. */
#define NAMES_MAX (UINT64_C(256) << 20)

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
    if (!text)
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
    if (!larger)
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
    if (!node || !grow((void **)&envoy->nodes, envoy->node_count, &envoy->node_room)) {
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

/* A "*" is any run of bytes and a backslash is itself: in a glob it is escaped. */
static void add_pattern(struct envoy_loader *loader, struct envoy_node *level,
                        struct weir_bytes composite, uint32_t number)
{
    struct envoy_pattern *pattern = envoy_keep(loader, sizeof(*pattern));
    char *glob = envoy_keep(loader, 2 * composite.size + 1);
    if (!pattern || !glob)
        return;
    size_t used = 0;
    for (size_t i = 0; i < composite.size; i++) {
        if (composite.data[i] == '\\')
            glob[used++] = '\\';
        glob[used++] = composite.data[i];
    }
    pattern->glob = (struct weir_bytes){glob, used};
    pattern->node = number;
    if (level->last_pattern)
        level->last_pattern->next = pattern;
    else
        level->patterns = pattern;
    level->last_pattern = pattern;
}

/* --- Limits ----------------------------------------------------------------------------------- */

/* Adds a limit to a rule. `line`: of the key that it comes from; 0: rate_limit. */
static void add_limit(struct envoy_loader *loader, struct weir_envoy_rule *rule,
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
        if (!part)
            return;
        weir_limit_divide(&limit->limit, loader->envoy->options.nodes, part);
        limit->limit.local = part;
    }
    size_t size = envoy_prefix_write(prefix, &limit->limit.spec, rule->limit_count);
    limit->prefix = envoy_keep_text(loader, (struct weir_bytes){prefix, size});
    limit->requests = requests;
    limit->unit = unit;
    rule->limit_count++;
    if (rule->limit_count > loader->envoy->limits_max)
        loader->envoy->limits_max = rule->limit_count;
}

/* --- The `weir:` key of a descriptor ---------------------------------------------------------- */

#define NS_PER_SECOND UINT64_C(1000000000)

/* The keys of `weir` come first, those of an item of its `limits` follow. */
enum weir_key {
    KEY_ALGORITHM,
    KEY_UNIT_MULTIPLIER,
    KEY_BURST,
    KEY_SEGMENTS,
    KEY_STRICT,
    KEY_COST,
    KEY_CHARGE,
    KEY_ON_STORE_ERROR,
    KEY_MARK,
    KEY_LIMITS,
    KEY_UNIT,
    KEY_REQUESTS,
    KEYS,
};

static const char *const key_names[KEYS] = {
    "algorithm", "unit_multiplier", "burst", "segments", "strict", "cost",
    "charge",    "on_store_error",  "mark",  "limits",   "unit",   "requests_per_unit",
};

#define KEYS_OF_LIMIT                                                                              \
    (1u << KEY_ALGORITHM | 1u << KEY_UNIT_MULTIPLIER | 1u << KEY_BURST | 1u << KEY_SEGMENTS |      \
     1u << KEY_STRICT)
#define KEYS_OF_WEIR                                                                               \
    (KEYS_OF_LIMIT | 1u << KEY_COST | 1u << KEY_CHARGE | 1u << KEY_ON_STORE_ERROR |                \
     1u << KEY_MARK | 1u << KEY_LIMITS)
#define KEYS_OF_ITEM (KEYS_OF_LIMIT | 1u << KEY_UNIT | 1u << KEY_REQUESTS)

struct fields {
    const struct rules_node *value[KEYS]; /* NULL: absent */
};

static void wrong(struct envoy_loader *loader, const struct rules_node *node, const char *what)
{
    struct rules_quote quote;
    if (node->kind == RULES_SCALAR) {
        envoy_fail(loader, "weir: line %u: %s, not %s", node->line, what,
                   rules_quote(&quote, node->text, node->size));
    } else {
        envoy_fail(loader, "weir: line %u: %s", node->line, what);
    }
}

static void unknown_key(struct envoy_loader *loader, const struct rules_node *key, uint32_t known)
{
    const char *names[KEYS];
    size_t count = 0;
    struct rules_quote quote;
    for (int i = 0; i < KEYS; i++)
        if ((known >> i & 1) != 0)
            names[count++] = key_names[i];
    struct rules_hint room;
    const char *hint = rules_hint(&room, key->text, key->size, names, count);
    envoy_fail(loader, "weir: line %u: unknown key %s%s", key->line,
               rules_quote(&quote, key->text, key->size), hint);
}

static void read_fields(struct envoy_loader *loader, const struct rules_node *map, uint32_t known,
                        struct fields *fields)
{
    memset(fields, 0, sizeof(*fields));
    if (map->kind != RULES_MAP) {
        wrong(loader, map, "must be a mapping");
        return;
    }
    for (uint32_t i = 0; i < map->size && !loader->failed; i += 2) {
        const struct rules_node *key = map->items[i];
        int found = -1;
        for (int k = 0; k < KEYS && key->kind == RULES_SCALAR; k++) {
            bool same = key->size == strlen(key_names[k]) &&
                        memcmp(key->text, key_names[k], key->size) == 0;
            found = same && (known >> k & 1) != 0 ? k : found;
        }
        if (key->kind != RULES_SCALAR)
            wrong(loader, key, "a key must be a word");
        else if (found < 0)
            unknown_key(loader, key, known);
        else if (fields->value[found])
            envoy_fail(loader, "weir: line %u: `%s` is given twice", key->line, key_names[found]);
        else
            fields->value[found] = map->items[i + 1];
    }
}

/* A whole number within a range; `fallback` where it is absent. */
static uint64_t read_number(struct envoy_loader *loader, const struct fields *fields,
                            enum weir_key key, uint64_t least, uint64_t most, uint64_t fallback)
{
    const struct rules_node *node = fields->value[key];
    struct envoy_resolved value;
    if (!node)
        return fallback;
    bool whole = envoy_resolve(node, &value) && value.type == ENVOY_INT &&
                 (!value.negative || value.magnitude == 0);
    if (!whole || value.magnitude < least || value.magnitude > most) {
        char what[96];
        snprintf(what, sizeof(what), "`%s` must be a number from %llu to %llu", key_names[key],
                 (unsigned long long)least, (unsigned long long)most);
        wrong(loader, node, what);
        return fallback;
    }
    return value.magnitude;
}

/* One of `words`; `fallback` where it is absent. */
static unsigned read_word(struct envoy_loader *loader, const struct fields *fields,
                          enum weir_key key, const char *const *words, unsigned count,
                          unsigned fallback)
{
    const struct rules_node *node = fields->value[key];
    char what[256];
    int used = snprintf(what, sizeof(what), "`%s` must be one of", key_names[key]);
    for (unsigned i = 0; node && i < count; i++) {
        if (node->kind == RULES_SCALAR && strcmp(node->text, words[i]) == 0)
            return i;
        used +=
            snprintf(what + used, sizeof(what) - (size_t)used, "%s %s", i > 0 ? "," : "", words[i]);
    }
    if (node)
        wrong(loader, node, what);
    return fallback;
}

/* `mark`: a percentage such as 80%; 0 where it is absent. */
static uint8_t read_mark(struct envoy_loader *loader, const struct fields *fields)
{
    const struct rules_node *node = fields->value[KEY_MARK];
    unsigned percent = 0;
    uint32_t i = 0;
    if (!node)
        return 0;
    while (node->kind == RULES_SCALAR && i < node->size && i < 2 && node->text[i] >= '0' &&
           node->text[i] <= '9')
        percent = percent * 10 + (unsigned)(node->text[i++] - '0');
    bool good = percent > 0 && i + 1 == node->size && node->text[i] == '%';
    if (!good)
        wrong(loader, node, "`mark` must be a percentage from 1% to 99%");
    return good ? (uint8_t)percent : 0;
}

/* The algorithms that need no answer from those that were admitted: no leases, no delays. */
static unsigned list_algorithms(const char *names[ALGORITHMS],
                                enum weir_algorithm algorithms[ALGORITHMS])
{
    unsigned count = 0;
    for (unsigned i = 0; i < ALGORITHMS; i++) {
        enum weir_algorithm algorithm = (enum weir_algorithm)i;
        if (!algorithm_has(algorithm, ALGORITHM_CHOSEN) ||
            algorithm_has(algorithm, ALGORITHM_LEASES))
            continue;
        names[count] = weir_algorithm_name(algorithm);
        algorithms[count++] = algorithm;
    }
    return count;
}

static void read_spec(struct envoy_loader *loader, const struct fields *fields, uint8_t unit,
                      uint32_t requests, struct weir_limit_spec *spec)
{
    const char *names[ALGORITHMS];
    enum weir_algorithm algorithms[ALGORITHMS];
    unsigned count = list_algorithms(names, algorithms);
    uint64_t seconds = envoy_unit_seconds(unit);
    uint64_t multiplier_max = WEIR_WINDOW_MAX_NS / NS_PER_SECOND / (seconds > 0 ? seconds : 1);
    spec->algorithm = algorithms[read_word(loader, fields, KEY_ALGORITHM, names, count, 0)];
    spec->rate = requests;
    spec->window_ns = seconds * NS_PER_SECOND *
                      read_number(loader, fields, KEY_UNIT_MULTIPLIER, 1, multiplier_max, 1);
    spec->burst = read_number(loader, fields, KEY_BURST, 1, WEIR_BUCKET_MAX, 0);
    spec->segments = (uint32_t)read_number(loader, fields, KEY_SEGMENTS, 1, WEIR_SEGMENTS_MAX, 0);
    static const char *const no_yes[] = {"false", "true"};
    spec->strict = read_word(loader, fields, KEY_STRICT, no_yes, 2, 0) == 1;
    bool bucket = algorithm_has(spec->algorithm, ALGORITHM_BURST);
    if (fields->value[KEY_BURST] && !bucket) {
        envoy_fail(loader, "weir: line %u: `burst` is for token_bucket, gcra and leaky_bucket",
                   fields->value[KEY_BURST]->line);
    }
    bool sliding = spec->algorithm == WEIR_SLIDING_WINDOW;
    const struct rules_node *of_sliding =
        fields->value[fields->value[KEY_SEGMENTS] != NULL ? KEY_SEGMENTS : KEY_STRICT];
    if (of_sliding && !sliding) {
        envoy_fail(loader, "weir: line %u: `segments` and `strict` are for sliding_window",
                   of_sliding->line);
    }
}

static void load_item(struct envoy_loader *loader, const struct rules_node *node,
                      struct weir_envoy_rule *rule)
{
    struct fields fields;
    struct weir_limit_spec spec = {0};
    read_fields(loader, node, KEYS_OF_ITEM, &fields);
    if (loader->failed)
        return;
    const struct rules_node *unit_node = fields.value[KEY_UNIT];
    uint8_t unit = WEIR_ENVOY_UNKNOWN;
    if (unit_node && unit_node->kind == RULES_SCALAR)
        unit = envoy_unit_of((struct weir_bytes){unit_node->text, unit_node->size});
    if (unit == WEIR_ENVOY_UNKNOWN || !fields.value[KEY_REQUESTS]) {
        wrong(loader, unit == WEIR_ENVOY_UNKNOWN && unit_node ? unit_node : node,
              "a limit needs a `unit` (second, minute, hour, day, week, month, year) and "
              "`requests_per_unit`");
        return;
    }
    uint32_t requests = (uint32_t)read_number(loader, &fields, KEY_REQUESTS, 0, WEIR_RATE_MAX, 0);
    read_spec(loader, &fields, unit, requests, &spec);
    add_limit(loader, rule, &spec, requests, unit, node->line);
}

static void load_items(struct envoy_loader *loader, const struct rules_node *list,
                       struct weir_envoy_rule *rule)
{
    if (list->kind != RULES_LIST || list->size > ENVOY_LIMITS_MAX - 1) {
        char what[64];
        snprintf(what, sizeof(what), "`limits` must be a list of at most %d", ENVOY_LIMITS_MAX - 1);
        wrong(loader, list, what);
        return;
    }
    for (uint32_t i = 0; i < list->size && !loader->failed; i++)
        load_item(loader, list->items[i], rule);
}

static void load_manner(struct envoy_loader *loader, const struct fields *fields,
                        enum weir_algorithm algorithm, struct weir_envoy_rule *rule)
{
    static const char *const charges[] = {"always", "if_admitted", "if_all_allow"};
    static const char *const failures[] = {"fail", "local", "open", "closed"};
    /* A sliding window that charges denials would shut out a client that stays a little too fast.
     */
    unsigned charge = rule->charge == ENVOY_CHARGE_ALWAYS && algorithm != WEIR_FIXED_WINDOW
                          ? ENVOY_CHARGE_IF_ADMITTED
                          : rule->charge;
    rule->cost = read_number(loader, fields, KEY_COST, 1, WEIR_RATE_MAX, 1);
    rule->charge = (uint8_t)read_word(loader, fields, KEY_CHARGE, charges, 3, charge);
    const struct rules_node *given = fields->value[KEY_CHARGE];
    if (given && rule->charge == ENVOY_CHARGE_IF_ALL && loader->envoy->options.redis_compat)
        wrong(loader, given, "`charge: if_all_allow` cannot be combined with `redis_compat`");
    rule->on_store_error =
        (uint8_t)read_word(loader, fields, KEY_ON_STORE_ERROR, failures, 4, rule->on_store_error);
    rule->mark = read_mark(loader, fields);
    loader->envoy->marks |= rule->mark != 0;
    const struct weir_envoy_options *options = &loader->envoy->options;
    given = fields->value[KEY_ON_STORE_ERROR];
    if (given && rule->on_store_error == WEIR_ENVOY_STORE_LOCAL && options->shared &&
        options->nodes == 0)
        wrong(loader, given, "`on_store_error: local` needs `nodes` in the rules file's `store`");
}

/* Makes the limits of a rule: its rate_limit, and those of `weir`. */
static void make_limits(struct envoy_loader *loader, const struct envoy_source *source,
                        struct weir_envoy_rule *rule)
{
    struct fields fields = {{NULL}};
    struct weir_limit_spec spec = {0};
    uint32_t line = 0;
    if (rule->unlimited) {
        if (source->weir) {
            envoy_fail(loader, "weir: line %u: nothing to say of an unlimited descriptor",
                       source->weir->line);
        }
        return;
    }
    if (source->weir) {
        line = source->weir->line;
        read_fields(loader, source->weir, KEYS_OF_WEIR, &fields);
        if (loader->failed)
            return;
    }
    const struct rules_node *list = fields.value[KEY_LIMITS];
    uint32_t room = list ? ENVOY_LIMITS_MAX : 1;
    rule->limits = envoy_keep(loader, room * sizeof(*rule->limits));
    if (!rule->limits)
        return;
    read_spec(loader, &fields, rule->unit, rule->requests, &spec);
    load_manner(loader, &fields, spec.algorithm, rule);
    if (!loader->failed)
        add_limit(loader, rule, &spec, rule->requests, rule->unit, line);
    if (list && !loader->failed)
        load_items(loader, list, rule);
}

/* --- Rules ------------------------------------------------------------------------------------ */

static uint32_t name_number(struct envoy_loader *loader, struct weir_bytes name)
{
    struct weir_envoy *envoy = loader->envoy;
    uint32_t number = find(&envoy->names, 0, name);
    if (number == RULES_NONE) {
        number = envoy->name_count++;
        add_word(loader, &envoy->names, 0, envoy_keep_text(loader, name), number);
    }
    return number;
}

static void check_replaces(struct envoy_loader *loader, const struct envoy_source *source,
                           struct weir_envoy_rule *rule)
{
    uint32_t *replaces = envoy_keep(loader, (source->replace_count + 1) * sizeof(*replaces));
    for (uint32_t i = 0; replaces && i < source->replace_count; i++) {
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
    if (!rule || !grow((void **)&envoy->rules, envoy->rule_count, &envoy->rule_room)) {
        loader->no_memory = true;
        return NULL;
    }
    rule->stat = stat;
    rule->name = envoy_keep_text(loader, source->name);
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

/* --- Descriptors ------------------------------------------------------------------------------ */

static void load_level(struct envoy_loader *loader, uint32_t level, struct weir_bytes path,
                       const struct envoy_source *sources, uint32_t count, uint32_t depth);

static void check_share(struct envoy_loader *loader, const struct envoy_source *source,
                        struct weir_bytes composite)
{
    if (source->share_threshold && !memchr(composite.data, '*', composite.size)) {
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
                                      : envoy_keep_text(loader, source->key);
    struct weir_bytes stat = join(loader, path, '.', composite);
    if (loader->no_memory)
        return;
    loader->name_bytes += stat.size;
    if (loader->name_bytes > NAMES_MAX) {
        envoy_fail(loader, "the full names of all descriptors are longer than 256 MiB together");
        return;
    }
    if (find(&envoy->words, level, composite) != RULES_NONE) {
        envoy_fail(loader, "duplicate descriptor composite key '%.*s'", (int)stat.size, stat.data);
        return;
    }
    struct weir_envoy_rule *rule = source->has_limit ? add_rule(loader, source, stat) : NULL;
    check_share(loader, source, composite);
    const struct weir_envoy_value *metadata =
        source->metadata ? envoy_metadata(loader, source->metadata) : NULL;
    if (rule && !loader->failed && !loader->no_memory) {
        rule->metadata = metadata;
        make_limits(loader, source, rule);
    } else if (!rule && source->weir) {
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
    if (memchr(composite.data, '*', composite.size))
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
    struct weir_bytes domain = envoy_keep_text(loader, file->domain);
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
