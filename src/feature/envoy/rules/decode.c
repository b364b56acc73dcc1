/* SPDX-License-Identifier: Apache-2.0 */
/* see decode.h */
#include "feature/envoy/rules/decode.h"

#include <stdio.h>
#include <string.h>

#include "rules/problems.h"

#define MISMATCHES_MAX (WEIR_ENVOY_ERROR_MAX - 64) /* bytes of their text */

static bool stopped(const struct envoy_loader *loader)
{
    return loader->failed || loader->no_memory;
}

/* --- Keys ------------------------------------------------------------------------------------- */

/* Where a mapping stands. The original knows a key wherever it stands, and passes it over in
 * silence where it means nothing. */
enum place {
    PLACE_FILE = 1,
    PLACE_DESCRIPTOR = 2,
    PLACE_LIMIT = 4,
    PLACE_REPLACE = 8,
    PLACE_NOWHERE = 16,
};
static const char *const place_names[] = {[PLACE_FILE] = "a file",
                                          [PLACE_DESCRIPTOR] = "a descriptor",
                                          [PLACE_LIMIT] = "rate_limit",
                                          [PLACE_REPLACE] = "replaces"};

struct known_key {
    const char *name;
    uint8_t places; /* where it means something */
    uint8_t inside; /* what its value is, where that is a mapping or a list of them */
};

static const struct known_key known_keys[] = {
    {"domain", PLACE_FILE, PLACE_NOWHERE},
    {"descriptors", PLACE_FILE | PLACE_DESCRIPTOR, PLACE_DESCRIPTOR},
    {"key", PLACE_DESCRIPTOR, PLACE_NOWHERE},
    {"value", PLACE_DESCRIPTOR, PLACE_NOWHERE},
    {"rate_limit", PLACE_DESCRIPTOR, PLACE_LIMIT},
    {"unit", PLACE_LIMIT, PLACE_NOWHERE},
    {"requests_per_unit", PLACE_LIMIT, PLACE_NOWHERE},
    {"unlimited", PLACE_LIMIT, PLACE_NOWHERE},
    {"name", PLACE_LIMIT | PLACE_REPLACE, PLACE_NOWHERE},
    {"replaces", PLACE_LIMIT, PLACE_REPLACE},
    {"shadow_mode", PLACE_DESCRIPTOR, PLACE_NOWHERE},
    {"quota_mode", PLACE_DESCRIPTOR, PLACE_NOWHERE},
    {"detailed_metric", PLACE_DESCRIPTOR, PLACE_NOWHERE},
    {"value_to_metric", PLACE_DESCRIPTOR, PLACE_NOWHERE},
    {"share_threshold", PLACE_DESCRIPTOR, PLACE_NOWHERE},
    {"metadata", PLACE_DESCRIPTOR, PLACE_NOWHERE},
    {"weir", PLACE_DESCRIPTOR, PLACE_NOWHERE}, /* ours */
};

static const struct known_key *find_key(const struct rules_node *key)
{
    for (size_t i = 0; i < sizeof(known_keys) / sizeof(known_keys[0]); i++)
        if (strlen(known_keys[i].name) == key->size &&
            memcmp(known_keys[i].name, key->text, key->size) == 0)
            return &known_keys[i];
    return NULL;
}

static void warn(struct envoy_loader *loader, const char *text, size_t size)
{
    struct weir_envoy *envoy = loader->envoy;
    if (envoy->warning_count == WEIR_ENVOY_WARNINGS_MAX)
        return;
    const char *kept = rules_arena_copy(&envoy->arena, text, size);
    loader->no_memory |= kept == NULL;
    envoy->warnings[envoy->warning_count++] = kept;
}

static void warn_more(struct envoy_loader *loader)
{
    char text[256];
    int size = snprintf(text, sizeof(text),
                        "%.120s: only the first YAML document of a file is read, as by the "
                        "original; what follows has no effect: put it into another file",
                        loader->file);
    warn(loader, text, (size_t)size);
}

static void warn_misplaced(struct envoy_loader *loader, const struct rules_node *key,
                           const struct known_key *known, enum place place)
{
    if ((known->places & place) != 0 || place == PLACE_NOWHERE)
        return;
    char text[256];
    int size = snprintf(text, sizeof(text), "%.160s: line %u: '%s' has no effect in %s",
                        loader->file, key->line, known->name, place_names[place]);
    warn(loader, text, (size_t)size);
}

static bool key_is(const struct rules_node *key, const char *name)
{
    return key->size == strlen(name) && memcmp(key->text, name, key->size) == 0;
}

/* `what` and a value as Go prints it, with `quote` around it. */
static void fail_with_value(struct envoy_loader *loader, const char *what, const char *quote,
                            const struct rules_node *node)
{
    char shown[256] = "";
    struct envoy_text text = {shown, 0, sizeof(shown)};
    envoy_text_add_value(&text, node);
    envoy_fail(loader, "%s%s%s%s", what, quote, shown, quote);
}

static void check_keys(struct envoy_loader *loader, const struct rules_node *map, enum place place);

static void check_merged(struct envoy_loader *loader, const struct rules_node *value,
                         enum place place)
{
    bool list = value->kind == RULES_LIST;
    for (uint32_t i = 0; i < (list ? value->size : 1) && !stopped(loader); i++) {
        const struct rules_node *map = list ? value->items[i] : value;
        if (map->kind == RULES_MAP) {
            check_keys(loader, map, place);
        } else {
            envoy_fail(loader, "error loading config file: yaml: map merge requires map or "
                               "sequence of maps as the value");
        }
    }
}

static void check_list(struct envoy_loader *loader, const struct rules_node *list, enum place place)
{
    for (uint32_t i = 0; i < list->size && !stopped(loader); i++) {
        if (list->items[i]->kind == RULES_MAP) {
            check_keys(loader, list->items[i], place);
        } else {
            fail_with_value(loader,
                            "config error, yaml file contains list of type other than map: ", "",
                            list->items[i]);
        }
    }
}

static void check_value(struct envoy_loader *loader, const struct rules_node *node,
                        enum place place)
{
    struct envoy_resolved value;
    envoy_resolve_or_fail(loader, node, &value);
    bool too_large = value.type == ENVOY_INT && !value.negative && value.magnitude > INT64_MAX;
    if (value.type == ENVOY_LIST)
        check_list(loader, node, place);
    else if (value.type == ENVOY_MAP)
        check_keys(loader, node, place);
    else if (value.type == ENVOY_FLOAT || too_large)
        envoy_fail(loader, "error checking config");
}

static void check_keys(struct envoy_loader *loader, const struct rules_node *map, enum place place)
{
    /* Aliases of aliases can be far deeper than their file. */
    if (++loader->depth > 2 * ENVOY_LEVELS_MAX)
        envoy_fail(loader, "nested deeper than %d", 2 * ENVOY_LEVELS_MAX);
    for (uint32_t i = 0; i < map->size && !stopped(loader); i += 2) {
        const struct rules_node *key = map->items[i], *value = map->items[i + 1];
        struct envoy_resolved resolved;
        if (envoy_is_merge(key)) {
            check_merged(loader, value, place);
            continue;
        }
        envoy_resolve_or_fail(loader, key, &resolved);
        const struct known_key *known = key->kind == RULES_SCALAR ? find_key(key) : NULL;
        if (resolved.type == ENVOY_LIST || resolved.type == ENVOY_MAP) {
            fail_with_value(loader, "error loading config file: yaml: invalid map key: ", "", key);
        } else if (resolved.type != ENVOY_TEXT) {
            fail_with_value(loader, "config error, key is not of type string: ", "", key);
        } else if (!known) {
            fail_with_value(loader, "config error, unknown key ", "'", key);
        } else {
            warn_misplaced(loader, key, known, place);
            if (!key_is(key, "metadata") && !key_is(key, "weir"))
                check_value(loader, value, (enum place)known->inside);
        }
    }
    loader->depth--;
}

/* --- Values ----------------------------------------------------------------------------------- */

static void mismatch(struct envoy_loader *loader, const struct rules_node *node, const char *into)
{
    envoy_text_add(&loader->mismatches, "\n  ");
    envoy_text_add_mismatch(&loader->mismatches, node, into);
}

/* Readers leave what they fill alone where a value does not fit; null is the type's zero. */
static void read_text(struct envoy_loader *loader, const struct rules_node *node,
                      struct weir_bytes *text)
{
    struct envoy_resolved value;
    envoy_resolve(node, &value);
    if (value.type == ENVOY_NULL)
        *text = (struct weir_bytes){"", 0};
    else if (node->kind == RULES_SCALAR)
        *text = (struct weir_bytes){node->text, node->size};
    else
        mismatch(loader, node, "string");
}

static void read_bool(struct envoy_loader *loader, const struct rules_node *node, bool *flag)
{
    struct envoy_resolved value;
    envoy_resolve(node, &value);
    if (value.type == ENVOY_NULL || value.type == ENVOY_BOOL)
        *flag = value.boolean;
    else
        mismatch(loader, node, "bool");
}

static void read_number(struct envoy_loader *loader, const struct rules_node *node,
                        uint32_t *number)
{
    struct envoy_resolved value;
    envoy_resolve(node, &value);
    bool fits = value.magnitude <= UINT32_MAX && (!value.negative || value.magnitude == 0);
    if (value.type == ENVOY_NULL || (value.type == ENVOY_INT && fits))
        *number = (uint32_t)value.magnitude;
    else
        mismatch(loader, node, "uint32");
}

/* A list of mappings, each read by `read`. Returns their number; *items has size each. */
typedef void (*item_reader)(struct envoy_loader *, const struct rules_node *map, void *item);
static uint32_t read_list(struct envoy_loader *loader, const struct rules_node *node,
                          const char *into, size_t size, item_reader read, void *items)
{
    void *array = NULL;
    memcpy(items, &array, sizeof(array));
    struct envoy_resolved value;
    envoy_resolve(node, &value);
    if (value.type == ENVOY_NULL)
        return 0;
    if (node->kind != RULES_LIST) {
        mismatch(loader, node, into);
        return 0;
    }
    array = envoy_borrow(loader, (node->size + 1) * size);
    if (!array)
        return 0;
    memcpy(items, &array, sizeof(array));
    for (uint32_t i = 0; i < node->size; i++)
        read(loader, node->items[i], (char *)array + i * size);
    return node->size;
}

/* Every field of a mapping, in its order; "<<" puts those of others in its place. */
typedef void (*field_reader)(struct envoy_loader *, const struct rules_node *key,
                             const struct rules_node *value, void *out);
static void read_fields(struct envoy_loader *loader, const struct rules_node *map,
                        field_reader read, void *out)
{
    for (uint32_t i = 0; i < map->size && !loader->no_memory; i += 2) {
        const struct rules_node *key = map->items[i], *value = map->items[i + 1];
        if (!envoy_is_merge(key))
            read(loader, key, value, out);
        else if (value->kind == RULES_MAP)
            read_fields(loader, value, read, out);
        else /* a list of mappings: the earlier ones go before the later */
            for (uint32_t j = value->size; j > 0; j--)
                read_fields(loader, value->items[j - 1], read, out);
    }
}

static void read_replace_field(struct envoy_loader *loader, const struct rules_node *key,
                               const struct rules_node *value, void *out)
{
    if (key_is(key, "name"))
        read_text(loader, value, out);
}

static void read_replace(struct envoy_loader *loader, const struct rules_node *map, void *item)
{
    *(struct weir_bytes *)item = (struct weir_bytes){"", 0};
    read_fields(loader, map, read_replace_field, item);
}

static void read_limit_field(struct envoy_loader *loader, const struct rules_node *key,
                             const struct rules_node *value, void *out)
{
    struct envoy_source *source = out;
    if (key_is(key, "unit")) {
        read_text(loader, value, &source->unit);
    } else if (key_is(key, "requests_per_unit")) {
        read_number(loader, value, &source->requests);
    } else if (key_is(key, "unlimited")) {
        read_bool(loader, value, &source->unlimited);
    } else if (key_is(key, "name")) {
        read_text(loader, value, &source->name);
    } else if (key_is(key, "replaces")) {
        source->replace_count =
            read_list(loader, value, "[]config.yamlReplaces", sizeof(struct weir_bytes),
                      read_replace, (void *)&source->replaces);
    }
}

static void read_limit(struct envoy_loader *loader, const struct rules_node *node,
                       struct envoy_source *source)
{
    struct envoy_resolved value;
    envoy_resolve(node, &value);
    source->has_limit = value.type != ENVOY_NULL;
    if (node->kind == RULES_MAP)
        read_fields(loader, node, read_limit_field, source);
    else if (source->has_limit)
        mismatch(loader, node, "config.YamlRateLimit");
}

static void read_metadata(struct envoy_loader *loader, const struct rules_node *node,
                          struct envoy_source *source)
{
    struct envoy_resolved value;
    envoy_resolve(node, &value);
    source->metadata = node->kind == RULES_MAP ? node : NULL;
    if (node->kind != RULES_MAP && value.type != ENVOY_NULL)
        mismatch(loader, node, "map[string]interface {}");
}

static void read_descriptor(struct envoy_loader *loader, const struct rules_node *map, void *item);

static void read_descriptor_field(struct envoy_loader *loader, const struct rules_node *key,
                                  const struct rules_node *value, void *out)
{
    struct envoy_source *source = out;
    if (key_is(key, "key")) {
        read_text(loader, value, &source->key);
    } else if (key_is(key, "value")) {
        read_text(loader, value, &source->value);
    } else if (key_is(key, "rate_limit")) {
        read_limit(loader, value, source);
    } else if (key_is(key, "descriptors")) {
        source->child_count = read_list(loader, value, "[]config.YamlDescriptor", sizeof(*source),
                                        read_descriptor, (void *)&source->children);
    } else if (key_is(key, "shadow_mode")) {
        read_bool(loader, value, &source->shadow);
    } else if (key_is(key, "quota_mode")) {
        read_bool(loader, value, &source->quota);
    } else if (key_is(key, "detailed_metric")) {
        read_bool(loader, value, &source->detailed);
    } else if (key_is(key, "value_to_metric")) {
        read_bool(loader, value, &source->value_to_metric);
    } else if (key_is(key, "share_threshold")) {
        read_bool(loader, value, &source->share_threshold);
    } else if (key_is(key, "metadata")) {
        read_metadata(loader, value, source);
    } else if (key_is(key, "weir")) {
        source->weir = value;
    }
}

static void read_descriptor(struct envoy_loader *loader, const struct rules_node *map, void *item)
{
    struct envoy_source *source = item;
    source->key = source->value = source->unit = source->name = (struct weir_bytes){"", 0};
    read_fields(loader, map, read_descriptor_field, source);
}

static void read_root_field(struct envoy_loader *loader, const struct rules_node *key,
                            const struct rules_node *value, void *out)
{
    struct envoy_source_file *file = out;
    if (key_is(key, "domain")) {
        read_text(loader, value, &file->domain);
    } else if (key_is(key, "descriptors")) {
        file->count =
            read_list(loader, value, "[]config.YamlDescriptor", sizeof(struct envoy_source),
                      read_descriptor, (void *)&file->descriptors);
    }
}

/* --- A file ----------------------------------------------------------------------------------- */

static void decode_root(struct envoy_loader *loader, const struct rules_node *root,
                        struct envoy_source_file *file)
{
    char text[MISMATCHES_MAX] = "";
    struct envoy_resolved value;
    loader->mismatches = (struct envoy_text){text, 0, sizeof(text)};
    envoy_resolve(root, &value);
    if (root->kind == RULES_MAP)
        check_keys(loader, root, PLACE_FILE);
    else if (value.type != ENVOY_NULL)
        mismatch(loader, root, "map[interface {}]interface {}");
    if (root->kind == RULES_MAP && !stopped(loader))
        read_fields(loader, root, read_root_field, file);
    if (loader->mismatches.used > 0)
        envoy_fail(loader, "error loading config file: yaml: unmarshal errors:%s", text);
}

static struct rules_node *tree_of_yaml(struct envoy_loader *loader,
                                       const struct weir_envoy_file *from)
{
    struct rules_node *root = NULL;
    struct weir_problems problems = {0};
    bool more = false;
    int err = rules_document_first(&root, &loader->scratch, loader->file, from->text, from->size,
                                   &more, &problems);
    if (err == WEIR_ERR_MEMORY)
        loader->no_memory = true;
    else if (err < 0)
        envoy_fail(loader, "error loading config file: %s", problems.list[0].message);
    weir_problems_free(&problems);
    if (more)
        warn_more(loader);
    return err < 0 ? NULL : root;
}

static struct rules_node *tree_of_other(struct envoy_loader *loader,
                                        const struct weir_envoy_file *from)
{
    struct rules_node *root = NULL;
    struct weir_reason reason = {""};
    int err = from->tree(&root, &loader->scratch, from, &reason);
    if (err == WEIR_ERR_MEMORY)
        loader->no_memory = true;
    else if (err < 0)
        envoy_fail(loader, "error loading config: %s", reason.text);
    return err < 0 ? NULL : root;
}

void envoy_decode(struct envoy_loader *loader, const struct weir_envoy_file *from,
                  struct envoy_source_file *file)
{
    file->domain = (struct weir_bytes){"", 0};
    const struct rules_node *root =
        from->tree ? tree_of_other(loader, from) : tree_of_yaml(loader, from);
    if (root)
        decode_root(loader, root, file);
}
