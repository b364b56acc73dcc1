/* SPDX-License-Identifier: Apache-2.0 */
/* see message.h */
#include "feature/envoy/server/xds/message.h"

#include <stdio.h>
#include <string.h>

#include "core/text/utf8.h"
#include "rules/load/document.h"
#include "wire/grpc/discovery.h"
#include "wire/grpc/protobuf.h"

/* --- The messages ----------------------------------------------------------------------------- */

enum kind { TEXT, FLAG, NUMBER, UNIT, MESSAGE, MESSAGES, STRUCT };

struct field {
    uint8_t number, kind;
    const char *name; /* of its key in YAML */
    const struct message *inside;
};

struct message {
    const struct field *fields;
    uint32_t count;
};

#define MESSAGE_OF(rows)                                                                           \
    {                                                                                              \
        rows, sizeof(rows) / sizeof((rows)[0])                                                     \
    }

static const struct field replace_fields[] = {{1, TEXT, "name", NULL}};
static const struct message replace = MESSAGE_OF(replace_fields);

static const struct field policy_fields[] = {
    {1, UNIT, "unit", NULL}, {2, NUMBER, "requests_per_unit", NULL}, {3, FLAG, "unlimited", NULL},
    {4, TEXT, "name", NULL}, {5, MESSAGES, "replaces", &replace},
};
static const struct message policy = MESSAGE_OF(policy_fields);

static const struct message descriptor;
static const struct field descriptor_fields[] = {
    {1, TEXT, "key", NULL},
    {2, TEXT, "value", NULL},
    {3, MESSAGE, "rate_limit", &policy},
    {4, MESSAGES, "descriptors", &descriptor},
    {5, FLAG, "shadow_mode", NULL},
    {6, FLAG, "detailed_metric", NULL},
    {7, FLAG, "quota_mode", NULL},
    {8, STRUCT, "metadata", NULL},
};
static const struct message descriptor = MESSAGE_OF(descriptor_fields);

static const struct field config_fields[] = {
    {2, TEXT, "domain", NULL},
    {3, MESSAGES, "descriptors", &descriptor},
};
static const struct message config = MESSAGE_OF(config_fields);

/* In the order of the enum, which is not that of their lengths. */
static const char *const units[] = {"UNKNOWN", "SECOND", "MINUTE", "HOUR",
                                    "DAY",     "MONTH",  "YEAR",   "WEEK"};

/* --- Nodes ------------------------------------------------------------------------------------ */

struct maker {
    struct rules_arena *arena;
    struct weir_reason *reason;
    bool no_memory, failed;
    unsigned depth;
    uint32_t nodes;
};

static void fail(struct maker *maker, const char *what, const char *name)
{
    if (!maker->failed)
        snprintf(maker->reason->text, sizeof(maker->reason->text), "%s: %s", name, what);
    maker->failed = true;
}

/* As many as a file of YAML may have: two bytes of a message can be a node of 200. */
static void count_node(struct maker *maker)
{
    if (++maker->nodes > RULES_NODES_MAX)
        fail(maker, "it has too many fields", "a RateLimitConfig");
}

static struct rules_node *make_node(struct maker *maker, uint8_t kind, uint32_t items)
{
    struct rules_node *node = rules_arena_alloc(maker->arena, sizeof(*node));
    struct rules_node **list =
        rules_arena_alloc(maker->arena, (items + 1) * sizeof(struct rules_node *));
    maker->no_memory |= !node || !list;
    count_node(maker);
    if (!node || !list || maker->failed)
        return NULL;
    *node = (struct rules_node){.kind = kind, .line = 1, .column = 1, .weight = 1};
    node->items = list;
    return node;
}

/* A scalar; `plain` is read as YAML reads it, else it is a text whatever it looks like. */
static struct rules_node *make_scalar(struct maker *maker, struct weir_bytes text, bool plain)
{
    struct rules_node *node = rules_arena_alloc(maker->arena, sizeof(*node));
    const char *copy = rules_arena_copy(maker->arena, text.data, text.size);
    maker->no_memory |= !node || !copy;
    count_node(maker);
    if (!node || !copy || maker->failed)
        return NULL;
    *node = (struct rules_node){.kind = RULES_SCALAR,
                                .plain = plain,
                                .line = 1,
                                .column = 1,
                                .weight = 1,
                                .size = (uint32_t)text.size};
    node->text = copy;
    return node;
}

static struct rules_node *make_word(struct maker *maker, const char *word)
{
    return make_scalar(maker, (struct weir_bytes){word, strlen(word)}, true);
}

static struct rules_node *make_name(struct maker *maker, const char *name)
{
    return make_scalar(maker, (struct weir_bytes){name, strlen(name)}, false);
}

static struct rules_node *make_text(struct maker *maker, struct weir_bytes text, const char *name)
{
    if (!weir_utf8_valid(text.data, text.size))
        fail(maker, "a text that is no UTF-8", name);
    return make_scalar(maker, text, false);
}

static struct rules_node *make_number(struct maker *maker, uint64_t number)
{
    char text[24];
    snprintf(text, sizeof(text), "%llu", (unsigned long long)number);
    return make_word(maker, text);
}

/* The node takes what it has room for, which is what was counted for it. */
static void add(struct rules_node *node, struct rules_node *item)
{
    if (node && item)
        node->items[node->size++] = item;
}

/* Whether a message may be in so many others. */
static bool enter(struct maker *maker, const char *name)
{
    if (++maker->depth > WEIR_XDS_DEPTH_MAX)
        fail(maker, "messages are nested too deep", name);
    return !maker->failed && !maker->no_memory;
}

/* --- google.protobuf.Struct ------------------------------------------------------------------- */

enum { STRUCT_FIELDS = 1, ENTRY_KEY = 1, ENTRY_VALUE = 2, LIST_VALUES = 1 };
enum { IS_NULL = 1, IS_NUMBER = 2, IS_STRING = 3, IS_BOOL = 4, IS_STRUCT = 5, IS_LIST = 6 };

static uint32_t count_of(struct weir_bytes message, uint32_t number)
{
    struct weir_pb_reader reader = weir_pb_read(message);
    uint32_t count = 0;
    while (weir_pb_next(&reader))
        count += weir_pb_is(&reader, number, WEIR_PB_BYTES);
    return count;
}

static struct rules_node *make_struct(struct maker *maker, struct weir_bytes message);

static struct rules_node *make_double(struct maker *maker, struct weir_bytes bytes)
{
    double number;
    char text[40];
    memcpy(&number, bytes.data, sizeof(number)); /* little-endian, as this machine is */
    snprintf(text, sizeof(text), "%.17g", number);
    if (!strcmp(text, "inf") || !strcmp(text, "-inf"))
        snprintf(text, sizeof(text), "%s", number > 0 ? ".inf" : "-.inf");
    else if (strstr(text, "nan"))
        snprintf(text, sizeof(text), ".nan");
    return make_word(maker, text);
}

static struct rules_node *make_value(struct maker *maker, struct weir_bytes message);

static struct rules_node *make_list(struct maker *maker, struct weir_bytes message)
{
    struct rules_node *list = make_node(maker, RULES_LIST, count_of(message, LIST_VALUES));
    struct weir_pb_reader reader = weir_pb_read(message);
    while (weir_pb_next(&reader))
        if (weir_pb_is(&reader, LIST_VALUES, WEIR_PB_BYTES))
            add(list, make_value(maker, reader.bytes));
    if (reader.bad)
        fail(maker, "malformed", "metadata");
    return list;
}

/* The last of what it holds; nothing is null. */
static struct rules_node *make_value(struct maker *maker, struct weir_bytes message)
{
    struct weir_pb_reader reader = weir_pb_read(message);
    struct rules_node *node = NULL;
    if (!enter(maker, "metadata"))
        return NULL;
    while (weir_pb_next(&reader))
        if (weir_pb_is(&reader, IS_NUMBER, WEIR_PB_FIXED64))
            node = make_double(maker, reader.bytes);
        else if (weir_pb_is(&reader, IS_STRING, WEIR_PB_BYTES))
            node = make_text(maker, reader.bytes, "metadata");
        else if (weir_pb_is(&reader, IS_BOOL, WEIR_PB_VARINT))
            node = make_word(maker, reader.value ? "true" : "false");
        else if (weir_pb_is(&reader, IS_STRUCT, WEIR_PB_BYTES))
            node = make_struct(maker, reader.bytes);
        else if (weir_pb_is(&reader, IS_LIST, WEIR_PB_BYTES))
            node = make_list(maker, reader.bytes);
        else if (weir_pb_is(&reader, IS_NULL, WEIR_PB_VARINT))
            node = NULL;
    if (reader.bad)
        fail(maker, "malformed", "metadata");
    maker->depth--;
    return node ? node : make_word(maker, "null");
}

static void add_entry(struct maker *maker, struct rules_node *map, struct weir_bytes entry)
{
    struct weir_pb_reader reader = weir_pb_read(entry);
    struct weir_bytes name = {"", 0}, value = {"", 0};
    while (weir_pb_next(&reader))
        if (weir_pb_is(&reader, ENTRY_KEY, WEIR_PB_BYTES))
            name = reader.bytes;
        else if (weir_pb_is(&reader, ENTRY_VALUE, WEIR_PB_BYTES))
            value = reader.bytes;
    if (reader.bad)
        fail(maker, "malformed", "metadata");
    struct rules_node *key = make_text(maker, name, "metadata");
    struct rules_node *item = make_value(maker, value);
    if (key && item) {
        add(map, key);
        add(map, item);
    }
}

static struct rules_node *make_struct(struct maker *maker, struct weir_bytes message)
{
    struct rules_node *map = make_node(maker, RULES_MAP, 2 * count_of(message, STRUCT_FIELDS));
    struct weir_pb_reader reader = weir_pb_read(message);
    while (weir_pb_next(&reader))
        if (weir_pb_is(&reader, STRUCT_FIELDS, WEIR_PB_BYTES))
            add_entry(maker, map, reader.bytes);
    if (reader.bad)
        fail(maker, "malformed", "metadata");
    return map;
}

/* --- RateLimitConfig -------------------------------------------------------------------------- */

static struct rules_node *make_message(struct maker *maker, struct weir_bytes message,
                                       const struct message *what, const char *name);

static struct rules_node *make_unit(struct maker *maker, uint64_t unit)
{
    return unit < sizeof(units) / sizeof(units[0]) ? make_name(maker, units[unit])
                                                   : make_number(maker, unit);
}

static enum weir_pb_type type_of(uint8_t kind)
{
    return kind == FLAG || kind == NUMBER || kind == UNIT ? WEIR_PB_VARINT : WEIR_PB_BYTES;
}

static struct rules_node *make_one(struct maker *maker, const struct field *field,
                                   const struct weir_pb_reader *reader)
{
    switch (field->kind) {
    case TEXT:
        return make_text(maker, reader->bytes, field->name);
    case FLAG:
        return make_word(maker, reader->value ? "true" : "false");
    case NUMBER: /* of 32 bits, the rest of which are cut */
        return make_number(maker, (uint32_t)reader->value);
    case UNIT:
        return make_unit(maker, (uint32_t)reader->value);
    case STRUCT:
        return make_struct(maker, reader->bytes);
    default:
        return make_message(maker, reader->bytes, field->inside, field->name);
    }
}

/* The value of a field: of what is there several times the last counts, or a list has them all;
 * NULL: it is not there. */
static struct rules_node *make_field(struct maker *maker, struct weir_bytes message,
                                     const struct field *field)
{
    struct weir_pb_reader reader = weir_pb_read(message), found = reader;
    struct rules_node *list = NULL;
    bool any = false;
    if (field->kind == MESSAGES)
        list = make_node(maker, RULES_LIST, count_of(message, field->number));
    while (weir_pb_next(&reader)) {
        if (!weir_pb_is(&reader, field->number, type_of(field->kind)))
            continue;
        any = true;
        found = reader;
        if (list)
            add(list, make_one(maker, field, &reader));
    }
    if (reader.bad)
        fail(maker, "malformed", field->name);
    if (any && !list)
        return make_one(maker, field, &found);
    /* The original's enum has a name where nothing is set. */
    return any ? list : field->kind == UNIT ? make_unit(maker, 0) : NULL;
}

static struct rules_node *make_message(struct maker *maker, struct weir_bytes message,
                                       const struct message *what, const char *name)
{
    if (!enter(maker, name))
        return NULL;
    struct rules_node *map = make_node(maker, RULES_MAP, 2 * what->count);
    for (uint32_t i = 0; i < what->count && !maker->failed && !maker->no_memory; i++) {
        struct rules_node *value = make_field(maker, message, &what->fields[i]);
        if (value) {
            add(map, make_name(maker, what->fields[i].name));
            add(map, value);
        }
    }
    maker->depth--;
    return map;
}

int weir_xds_tree(struct rules_node **root, struct rules_arena *arena,
                  const struct weir_envoy_file *file, struct weir_reason *reason)
{
    struct maker maker = {.arena = arena, .reason = reason};
    *root = make_message(&maker, (struct weir_bytes){file->text, file->size}, &config, file->name);
    if (maker.no_memory)
        return WEIR_ERR_MEMORY;
    return maker.failed ? WEIR_ERR_SYNTAX : 0;
}

/* --- A response ------------------------------------------------------------------------------- */

#define CONFIG_NAME 1

static int read_file(struct weir_envoy_file *file, struct rules_arena *arena,
                     const struct weir_discovery_resource *resource, struct weir_reason *reason)
{
    struct weir_pb_reader reader = weir_pb_read(resource->value);
    struct weir_bytes name = {"", 0}, type = resource->type_url;
    if (type.size != strlen(WEIR_XDS_TYPE_URL) || memcmp(type.data, WEIR_XDS_TYPE_URL, type.size)) {
        snprintf(reason->text, sizeof(reason->text), "a resource of type '%.*s'",
                 (int)(type.size < 100 ? type.size : 100), type.data);
        return WEIR_ERR_SYNTAX;
    }
    while (weir_pb_next(&reader))
        if (weir_pb_is(&reader, CONFIG_NAME, WEIR_PB_BYTES))
            name = reader.bytes;
    if (reader.bad || !weir_utf8_valid(name.data, name.size)) {
        snprintf(reason->text, sizeof(reason->text), "a RateLimitConfig is malformed");
        return WEIR_ERR_SYNTAX;
    }
    file->name = rules_arena_copy(arena, name.data, name.size);
    file->text = resource->value.data;
    file->size = resource->value.size;
    file->tree = weir_xds_tree;
    return file->name ? 0 : WEIR_ERR_MEMORY;
}

int weir_xds_files(struct weir_envoy_file **files, uint32_t *count, struct rules_arena *arena,
                   struct weir_bytes message, struct weir_reason *reason)
{
    struct weir_discovery_response response;
    struct weir_discovery_resource resource;
    size_t at = 0;
    *count = 0;
    if (weir_discovery_response_read(&response, message) < 0) {
        snprintf(reason->text, sizeof(reason->text), "a DiscoveryResponse is malformed");
        return WEIR_ERR_SYNTAX;
    }
    *files = rules_arena_alloc(arena, (response.count + 1) * sizeof(**files));
    int err = *files ? 0 : WEIR_ERR_MEMORY;
    while (err == 0 && weir_discovery_resource_next(message, &at, &resource))
        err = read_file(&(*files)[(*count)++], arena, &resource, reason);
    return err;
}
