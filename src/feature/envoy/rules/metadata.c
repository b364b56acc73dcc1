/* SPDX-License-Identifier: Apache-2.0 */
/* see metadata.h */
#include "feature/envoy/rules/metadata.h"

/* A client's protobuf library refuses messages of more than 100 levels; each level here is three.
 */
#define DEPTH_MAX (WEIR_ENVOY_DEPTH_MAX - 2)
/* Of one mapping: names are compared one by one, here and where a response unites structs. */
#define FIELDS_MAX 256

struct reader {
    struct envoy_loader *loader;
    uint32_t values;
};

/* YAML is UTF-8, escapes included, as protobuf strings have to be. */
static struct weir_bytes read_string(struct reader *reader, const struct rules_node *node)
{
    struct envoy_loader *loader = reader->loader;
    const char *copy = rules_arena_copy(&loader->envoy->arena, node->text, node->size);
    loader->no_memory |= copy == NULL;
    return (struct weir_bytes){copy, copy ? node->size : 0};
}

static void read_value(struct reader *reader, const struct rules_node *node, unsigned depth,
                       struct weir_envoy_value *out);

/* The fields of a struct under construction: each name once, the last value of it. */
static void put_field(struct weir_envoy_value *map, struct weir_bytes *names,
                      struct weir_envoy_value *items, struct weir_bytes name,
                      const struct weir_envoy_value *value)
{
    uint32_t at = envoy_name_at(names, map->count, name);
    map->count += at == map->count;
    names[at] = name;
    items[at] = *value;
}

static const struct rules_node *merged_map(const struct rules_node *value, uint32_t i)
{
    const struct rules_node *map = value->kind == RULES_LIST ? value->items[i] : value;
    return map->kind == RULES_MAP ? map : NULL;
}

/* How many fields a mapping has at most, those of "<<" included. */
static uint32_t count_fields(const struct rules_node *map)
{
    uint32_t count = map->size / 2;
    for (uint32_t i = 0; i < map->size; i += 2) {
        const struct rules_node *value = map->items[i + 1];
        uint32_t maps = value->kind == RULES_LIST ? value->size : 1;
        for (uint32_t j = 0; envoy_is_merge(map->items[i]) && j < maps; j++) {
            const struct rules_node *merged = merged_map(value, j);
            count += merged != NULL ? count_fields(merged) : 0;
        }
    }
    return count;
}

static void read_map_fields(struct reader *reader, const struct rules_node *map, unsigned depth,
                            struct weir_envoy_value *out, struct weir_bytes *names,
                            struct weir_envoy_value *items)
{
    for (uint32_t i = 0; i < map->size && !reader->loader->failed; i += 2) {
        const struct rules_node *key = map->items[i], *value = map->items[i + 1];
        struct weir_envoy_value item;
        if (envoy_is_merge(key)) {
            for (uint32_t j = value->kind == RULES_LIST ? value->size : 1; j > 0; j--) {
                const struct rules_node *merged = merged_map(value, j - 1);
                if (merged)
                    read_map_fields(reader, merged, depth, out, names, items);
            }
        } else if (key->kind != RULES_SCALAR) {
            envoy_fail(reader->loader, "error loading config file: yaml: invalid map key");
        } else {
            read_value(reader, value, depth + 1, &item);
            put_field(out, names, items, read_string(reader, key), &item);
        }
    }
}

static void read_map(struct reader *reader, const struct rules_node *map, unsigned depth,
                     struct weir_envoy_value *out)
{
    uint32_t count = count_fields(map);
    if (count > FIELDS_MAX) {
        envoy_fail(reader->loader, "error parsing metadata: more than %d fields", FIELDS_MAX);
        count = 0;
    }
    struct weir_bytes *names = envoy_keep(reader->loader, (count + 1) * sizeof(*names));
    struct weir_envoy_value *items = envoy_keep(reader->loader, (count + 1) * sizeof(*items));
    out->kind = WEIR_ENVOY_STRUCT;
    out->count = 0;
    out->names = names;
    out->items = items;
    if (names && items)
        read_map_fields(reader, map, depth, out, names, items);
}

static void read_list(struct reader *reader, const struct rules_node *list, unsigned depth,
                      struct weir_envoy_value *out)
{
    struct weir_envoy_value *items = envoy_keep(reader->loader, (list->size + 1) * sizeof(*items));
    out->kind = WEIR_ENVOY_LIST;
    out->items = items;
    out->count = items ? list->size : 0;
    for (uint32_t i = 0; i < out->count; i++)
        read_value(reader, list->items[i], depth + 1, &items[i]);
}

static void read_value(struct reader *reader, const struct rules_node *node, unsigned depth,
                       struct weir_envoy_value *out)
{
    struct envoy_resolved value;
    *out = (struct weir_envoy_value){.kind = WEIR_ENVOY_NULL};
    reader->values++;
    if (depth > DEPTH_MAX)
        envoy_fail(reader->loader, "error parsing metadata: nested deeper than %d", DEPTH_MAX);
    if (reader->loader->failed || reader->loader->no_memory)
        return;
    envoy_resolve_or_fail(reader->loader, node, &value);
    switch (value.type) {
    case ENVOY_BOOL:
        out->kind = WEIR_ENVOY_BOOL;
        out->boolean = value.boolean;
        break;
    case ENVOY_INT:
        out->kind = WEIR_ENVOY_NUMBER;
        out->number = value.negative ? -(double)value.magnitude : (double)value.magnitude;
        break;
    case ENVOY_FLOAT:
        out->kind = WEIR_ENVOY_NUMBER;
        out->number = value.number;
        break;
    case ENVOY_TEXT:
        out->kind = WEIR_ENVOY_STRING;
        out->text = read_string(reader, node);
        break;
    case ENVOY_LIST:
        read_list(reader, node, depth, out);
        break;
    case ENVOY_MAP:
        read_map(reader, node, depth, out);
        break;
    default:
        break;
    }
}

const struct weir_envoy_value *envoy_metadata(struct envoy_loader *loader,
                                              const struct rules_node *node)
{
    struct reader reader = {loader, 0};
    struct weir_envoy_value *metadata = envoy_keep(loader, sizeof(*metadata));
    if (!metadata)
        return NULL;
    read_value(&reader, node, 1, metadata);
    if (reader.values > loader->envoy->metadata_values)
        loader->envoy->metadata_values = reader.values;
    return metadata->count > 0 ? metadata : NULL;
}
