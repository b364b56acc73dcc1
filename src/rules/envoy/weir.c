/* SPDX-License-Identifier: Apache-2.0 */
/* The `weir:` key of a descriptor: what the original does not have. All of it stands under one key,
 * because the original refuses keys that it does not know; see docs/envoy.md */
#include <stdio.h>
#include <string.h>

#include "rules/envoy/compiled.h"
#include "rules/load/problems.h"

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
    KEY_LIMITS,
    KEY_UNIT,
    KEY_REQUESTS,
    KEYS,
};

static const char *const key_names[KEYS] = {
    "algorithm",      "unit_multiplier", "burst", "segments",          "strict", "cost", "charge",
    "on_store_error", "limits",          "unit",  "requests_per_unit",
};

#define KEYS_OF_LIMIT                                                                              \
    (1u << KEY_ALGORITHM | 1u << KEY_UNIT_MULTIPLIER | 1u << KEY_BURST | 1u << KEY_SEGMENTS |      \
     1u << KEY_STRICT)
#define KEYS_OF_WEIR                                                                               \
    (KEYS_OF_LIMIT | 1u << KEY_COST | 1u << KEY_CHARGE | 1u << KEY_ON_STORE_ERROR |                \
     1u << KEY_LIMITS)
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
        else if (fields->value[found] != NULL)
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
    if (node == NULL)
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
    for (unsigned i = 0; node != NULL && i < count; i++) {
        if (node->kind == RULES_SCALAR && strcmp(node->text, words[i]) == 0)
            return i;
        used +=
            snprintf(what + used, sizeof(what) - (size_t)used, "%s %s", i > 0 ? "," : "", words[i]);
    }
    if (node != NULL)
        wrong(loader, node, what);
    return fallback;
}

/* Those that need no answer from who was admitted: no leases, no delays. */
static const enum weir_algorithm algorithms[] = {WEIR_FIXED_WINDOW, WEIR_SLIDING_WINDOW,
                                                 WEIR_SLIDING_LOG,  WEIR_TOKEN_BUCKET,
                                                 WEIR_GCRA,         WEIR_LEAKY_BUCKET};
#define ALGORITHMS (sizeof(algorithms) / sizeof(algorithms[0]))

static void read_spec(struct envoy_loader *loader, const struct fields *fields, uint8_t unit,
                      uint32_t requests, struct weir_limit_spec *spec)
{
    const char *names[ALGORITHMS];
    for (size_t i = 0; i < ALGORITHMS; i++)
        names[i] = weir_algorithm_name(algorithms[i]);
    uint64_t seconds = envoy_unit_seconds(unit);
    uint64_t multiplier_max = WEIR_WINDOW_MAX_NS / NS_PER_SECOND / (seconds > 0 ? seconds : 1);
    spec->algorithm = algorithms[read_word(loader, fields, KEY_ALGORITHM, names, ALGORITHMS, 0)];
    spec->rate = requests;
    spec->window_ns = seconds * NS_PER_SECOND *
                      read_number(loader, fields, KEY_UNIT_MULTIPLIER, 1, multiplier_max, 1);
    spec->burst = read_number(loader, fields, KEY_BURST, 1, WEIR_BUCKET_MAX, 0);
    spec->segments = (uint32_t)read_number(loader, fields, KEY_SEGMENTS, 1, WEIR_SEGMENTS_MAX, 0);
    static const char *const no_yes[] = {"false", "true"};
    spec->strict = read_word(loader, fields, KEY_STRICT, no_yes, 2, 0) == 1;
    bool bucket = spec->algorithm == WEIR_TOKEN_BUCKET || spec->algorithm == WEIR_GCRA ||
                  spec->algorithm == WEIR_LEAKY_BUCKET;
    if (fields->value[KEY_BURST] != NULL && !bucket) {
        envoy_fail(loader, "weir: line %u: `burst` is for token_bucket, gcra and leaky_bucket",
                   fields->value[KEY_BURST]->line);
    }
    bool sliding = spec->algorithm == WEIR_SLIDING_WINDOW;
    const struct rules_node *of_sliding =
        fields->value[fields->value[KEY_SEGMENTS] != NULL ? KEY_SEGMENTS : KEY_STRICT];
    if (of_sliding != NULL && !sliding) {
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
    if (unit_node != NULL && unit_node->kind == RULES_SCALAR)
        unit = envoy_unit_of((struct weir_bytes){unit_node->text, unit_node->size});
    if (unit == WEIR_ENVOY_UNKNOWN || fields.value[KEY_REQUESTS] == NULL) {
        wrong(loader, unit == WEIR_ENVOY_UNKNOWN && unit_node != NULL ? unit_node : node,
              "a limit needs a `unit` (second, minute, hour, day, week, month, year) and "
              "`requests_per_unit`");
        return;
    }
    uint32_t requests = (uint32_t)read_number(loader, &fields, KEY_REQUESTS, 0, WEIR_RATE_MAX, 0);
    read_spec(loader, &fields, unit, requests, &spec);
    envoy_add_limit(loader, rule, &spec, requests, unit, node->line);
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
    /* Windows that slide would keep out whoever goes on asking a little too fast. */
    unsigned charge = rule->charge == ENVOY_CHARGE_ALWAYS && algorithm != WEIR_FIXED_WINDOW
                          ? ENVOY_CHARGE_IF_ADMITTED
                          : rule->charge;
    rule->cost = read_number(loader, fields, KEY_COST, 1, WEIR_RATE_MAX, 1);
    rule->charge = (uint8_t)read_word(loader, fields, KEY_CHARGE, charges, 3, charge);
    const struct rules_node *given = fields->value[KEY_CHARGE];
    if (given != NULL && rule->charge == ENVOY_CHARGE_IF_ALL && loader->envoy->options.redis_compat)
        wrong(loader, given, "`charge: if_all_allow` does not go with `redis_compat`");
    rule->on_store_error =
        (uint8_t)read_word(loader, fields, KEY_ON_STORE_ERROR, failures, 4, rule->on_store_error);
    const struct weir_envoy_options *options = &loader->envoy->options;
    given = fields->value[KEY_ON_STORE_ERROR];
    if (given != NULL && rule->on_store_error == WEIR_ENVOY_STORE_LOCAL && options->shared &&
        options->nodes == 0)
        wrong(loader, given, "`on_store_error: local` needs `nodes` in the rules file's `store`");
}

void envoy_make_limits(struct envoy_loader *loader, const struct envoy_source *source,
                       struct weir_envoy_rule *rule)
{
    struct fields fields = {{NULL}};
    struct weir_limit_spec spec = {0};
    uint32_t line = 0;
    if (rule->unlimited) {
        if (source->weir != NULL) {
            envoy_fail(loader, "weir: line %u: nothing to say of an unlimited descriptor",
                       source->weir->line);
        }
        return;
    }
    if (source->weir != NULL) {
        line = source->weir->line;
        read_fields(loader, source->weir, KEYS_OF_WEIR, &fields);
        if (loader->failed)
            return;
    }
    const struct rules_node *list = fields.value[KEY_LIMITS];
    uint32_t room = list != NULL ? ENVOY_LIMITS_MAX : 1;
    rule->limits = envoy_keep(loader, room * sizeof(*rule->limits));
    if (rule->limits == NULL)
        return;
    read_spec(loader, &fields, rule->unit, rule->requests, &spec);
    load_manner(loader, &fields, spec.algorithm, rule);
    if (!loader->failed)
        envoy_add_limit(loader, rule, &spec, rule->requests, rule->unit, line);
    if (list != NULL && !loader->failed)
        load_items(loader, list, rule);
}
