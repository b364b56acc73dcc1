/* SPDX-License-Identifier: Apache-2.0 */
/* The dynamic metadata of a response: what was asked, and the metadata of what passed; see
 * compiled.h */
#include <string.h>

#include "core/bytes.h"
#include "rules/envoy/compiled.h"

static struct weir_envoy_value string_of(struct weir_bytes text)
{
    return (struct weir_envoy_value){.kind = WEIR_ENVOY_STRING, .text = text};
}

/* A struct with room for `room` fields. */
struct fields {
    struct weir_bytes *names;
    struct weir_envoy_value *items;
    uint32_t count;
};

static struct fields make_fields(struct weir_envoy_plan *plan, uint32_t room)
{
    return (struct fields){
        envoy_plan_alloc(plan, room * sizeof(struct weir_bytes)),
        envoy_plan_alloc(plan, room * sizeof(struct weir_envoy_value)),
        0,
    };
}

static void add_field(struct fields *fields, const char *name, struct weir_envoy_value value)
{
    fields->names[fields->count] = (struct weir_bytes){name, strlen(name)};
    fields->items[fields->count++] = value;
}

static struct weir_envoy_value struct_of(const struct fields *fields)
{
    return (struct weir_envoy_value){.kind = WEIR_ENVOY_STRUCT,
                                     .count = fields->count,
                                     .names = fields->names,
                                     .items = fields->items};
}

static struct weir_envoy_value number_of(double number)
{
    return (struct weir_envoy_value){.kind = WEIR_ENVOY_NUMBER, .number = number};
}

#define OVERRIDE_TEXT_MAX 64

/* As a Go program prints the message. */
static struct weir_bytes override_text(struct weir_envoy_plan *plan,
                                       const struct weir_envoy_descriptor *of)
{
    struct envoy_text text = {envoy_plan_alloc(plan, OVERRIDE_TEXT_MAX), 0, OVERRIDE_TEXT_MAX};
    text.data[0] = '\0';
    if (of->requests_per_unit != 0)
        envoy_text_add(&text, "requests_per_unit:%u", of->requests_per_unit);
    if (of->unit != 0)
        envoy_text_add(&text, "%sunit:%s", text.used > 0 ? " " : "", envoy_unit_name(of->unit));
    return (struct weir_bytes){text.data, text.used};
}

static struct weir_envoy_value entries_of(struct weir_envoy_plan *plan,
                                          const struct weir_envoy_descriptor *of)
{
    struct weir_envoy_value *items = envoy_plan_alloc(plan, of->entry_count * sizeof(*items));
    for (uint32_t i = 0; i < of->entry_count; i++) {
        struct weir_bytes key = of->entries[i].key, value = of->entries[i].value;
        char *text = envoy_plan_alloc(plan, key.size + value.size + 1);
        memcpy(text, key.data, key.size);
        text[key.size] = '=';
        memcpy(text + key.size + 1, value.data, value.size);
        items[i] = string_of((struct weir_bytes){text, key.size + value.size + 1});
    }
    return (struct weir_envoy_value){
        .kind = WEIR_ENVOY_LIST, .count = of->entry_count, .items = items};
}

static struct weir_envoy_value descriptor_of(struct weir_envoy_plan *plan,
                                             const struct weir_envoy_descriptor *of)
{
    struct fields fields = make_fields(plan, 3);
    add_field(&fields, "entries", entries_of(plan, of));
    if (of->has_limit)
        add_field(&fields, "limit", string_of(override_text(plan, of)));
    if (of->has_hits_addend)
        add_field(&fields, "hitsAddend", number_of((double)of->hits_addend));
    return struct_of(&fields);
}

uint32_t envoy_name_at(const struct weir_bytes *names, uint32_t count, struct weir_bytes name)
{
    uint32_t at = 0;
    while (at < count && !weir_bytes_equal(names[at], name))
        at++;
    return at;
}

/* The structs among the values that sources[0..count) have for a name. Returns their number. */
static uint32_t structs_of(const struct weir_envoy_value *const *sources, uint32_t count,
                           struct weir_bytes name, const struct weir_envoy_value **found)
{
    uint32_t structs = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = envoy_name_at(sources[i]->names, sources[i]->count, name);
        if (at < sources[i]->count && sources[i]->items[at].kind == WEIR_ENVOY_STRUCT)
            found[structs++] = &sources[i]->items[at];
    }
    return structs;
}

/* The union of structs: of two values of one name the first stays, but structs are united. */
static struct weir_envoy_value unite(struct weir_envoy_plan *plan,
                                     const struct weir_envoy_value *const *sources, uint32_t count)
{
    uint32_t room = 0;
    for (uint32_t i = 0; i < count; i++)
        room += sources[i]->count;
    struct fields all = make_fields(plan, room);
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t j = 0; j < sources[i]->count; j++) {
            const struct weir_envoy_value *same[ENVOY_METADATA_MAX];
            struct weir_bytes name = sources[i]->names[j];
            if (envoy_name_at(all.names, all.count, name) < all.count)
                continue;
            struct weir_envoy_value *item = &all.items[all.count];
            all.names[all.count++] = name;
            *item = sources[i]->items[j];
            if (item->kind == WEIR_ENVOY_STRUCT) {
                uint32_t structs = structs_of(sources + i, count - i, name, same);
                *item = structs > 1 ? unite(plan, same, structs) : *item;
            }
        }
    }
    return struct_of(&all);
}

static struct weir_envoy_value passed_metadata(struct weir_envoy_plan *plan,
                                               const struct weir_envoy_status *statuses)
{
    const struct weir_envoy_value *sources[ENVOY_METADATA_MAX];
    uint32_t count = 0;
    for (uint32_t i = 0; i < plan->request->descriptor_count; i++) {
        const struct weir_envoy_rule *rule = plan->items[i].rule;
        bool passed = statuses[i].code == WEIR_ENVOY_OK && !plan->items[i].unlimited;
        if (!passed || rule == NULL || rule->metadata == NULL)
            continue;
        bool seen = false;
        for (uint32_t j = 0; j < count; j++)
            seen = seen || sources[j] == rule->metadata;
        if (!seen && count < ENVOY_METADATA_MAX)
            sources[count++] = rule->metadata;
    }
    return unite(plan, sources, count);
}

const struct weir_envoy_value *envoy_dynamic_metadata(struct weir_envoy_plan *plan,
                                                      const struct weir_envoy_status *statuses)
{
    const struct weir_envoy_request *request = plan->request;
    struct weir_envoy_value *root = envoy_plan_alloc(plan, sizeof(*root));
    struct weir_envoy_value *list =
        envoy_plan_alloc(plan, request->descriptor_count * sizeof(*list));
    struct fields fields = make_fields(plan, 4);
    for (uint32_t i = 0; i < request->descriptor_count; i++)
        list[i] = descriptor_of(plan, &request->descriptors[i]);
    add_field(&fields, "domain", string_of(request->domain));
    add_field(&fields, "descriptors",
              (struct weir_envoy_value){
                  .kind = WEIR_ENVOY_LIST, .count = request->descriptor_count, .items = list});
    if (request->hits_addend != 0)
        add_field(&fields, "hitsAddend", number_of(request->hits_addend));
    struct weir_envoy_value metadata = passed_metadata(plan, statuses);
    if (metadata.count > 0)
        add_field(&fields, "metadata", metadata);
    *root = struct_of(&fields);
    return root;
}

/* A field of a struct, each piece of it aligned. */
#define FIELD_SIZE (sizeof(struct weir_bytes) + sizeof(struct weir_envoy_value))

size_t envoy_dynamic_size(const struct weir_envoy *envoy, const struct weir_envoy_request *request)
{
    uint64_t rules = request->descriptor_count < ENVOY_METADATA_MAX ? request->descriptor_count
                                                                    : ENVOY_METADATA_MAX;
    /* Every value of every source stands in at most one union, which has three pieces. */
    size_t size = 8 * FIELD_SIZE + 8 * 16 +
                  (size_t)(rules * envoy->metadata_values + 1) * (FIELD_SIZE + 2 * 16);
    for (uint32_t i = 0; i < request->descriptor_count; i++) {
        const struct weir_envoy_descriptor *of = &request->descriptors[i];
        size += sizeof(struct weir_envoy_value) + 3 * FIELD_SIZE + OVERRIDE_TEXT_MAX + 5 * 16;
        for (uint32_t j = 0; j < of->entry_count; j++) {
            size += sizeof(struct weir_envoy_value) + of->entries[j].key.size +
                    of->entries[j].value.size + 1 + 2 * 16;
        }
    }
    return size;
}
