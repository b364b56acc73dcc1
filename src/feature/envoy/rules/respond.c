/* SPDX-License-Identifier: Apache-2.0 */
/* see respond.h */
#include "feature/envoy/rules/respond.h"

#include <stdio.h>
#include <string.h>

#include "core/bytes.h"
#include "feature/envoy/rules/compiled.h"
#include "feature/envoy/rules/yaml.h"

/* --- Dynamic metadata ------------------------------------------------------------------------- */

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
    fields->names[fields->count] = weir_bytes_of(name);
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
        if (!passed || !rule || !rule->metadata)
            continue;
        bool seen = false;
        for (uint32_t j = 0; j < count; j++)
            seen = seen || sources[j] == rule->metadata;
        if (!seen && count < ENVOY_METADATA_MAX)
            sources[count++] = rule->metadata;
    }
    return unite(plan, sources, count);
}

/* The dynamic metadata of a response. */
static const struct weir_envoy_value *dynamic_metadata(struct weir_envoy_plan *plan,
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

static size_t dynamic_size(const struct weir_envoy *envoy, const struct weir_envoy_request *request)
{
    uint64_t rules = request->descriptor_count < ENVOY_METADATA_MAX ? request->descriptor_count
                                                                    : ENVOY_METADATA_MAX;
    /* Every value of every source is written once at most, as a union, which has three pieces. */
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

#define NS_PER_SECOND UINT64_C(1000000000)
#define NUMBER_MAX 24 /* digits of 64 bits, and a NUL */

static bool denied(const struct weir_envoy_part *part)
{
    return part->verdict == WEIR_DENIED;
}

/* --- One descriptor --------------------------------------------------------------------------- */

/* The limit that the client hears of: of those that deny the one that does so longest, else the one
 * with the least left. */
static const struct weir_envoy_part *telling_part(const struct weir_envoy_plan *plan,
                                                  const struct weir_envoy_item *item)
{
    const struct weir_envoy_part *best = &plan->parts[item->part];
    for (uint32_t i = 1; i < item->parts; i++) {
        const struct weir_envoy_part *part = &plan->parts[item->part + i];
        bool better = denied(part) != denied(best) ? denied(part)
                      : denied(part) ? part->report.retry_after_ns > best->report.retry_after_ns
                                     : part->report.remaining < best->report.remaining;
        best = better ? part : best;
    }
    return best;
}

static uint64_t seconds_up(uint64_t ns)
{
    return ns / NS_PER_SECOND + (ns % NS_PER_SECOND > 0);
}

/* A window's end, in whole seconds as the original tells it: never 0. Of what has no windows: when
 * the request would be admitted, or when all of it is back. */
static uint64_t reset_of(const struct weir_envoy_part *part)
{
    const struct weir_limit_spec *spec = &part->limit->spec;
    if (spec->algorithm == WEIR_FIXED_WINDOW)
        return seconds_up(spec->window_ns - part->now_ns % spec->window_ns);
    bool waits = denied(part) && part->report.retry_after_ns != WEIR_NEVER;
    return seconds_up(waits ? part->report.retry_after_ns : part->report.reset_after_ns);
}

static uint8_t unit_of_seconds(uint64_t seconds)
{
    uint8_t unit = WEIR_ENVOY_SECOND;
    while (unit + 1 < WEIR_ENVOY_UNITS && envoy_unit_seconds(unit) != seconds)
        unit++;
    return unit;
}

static void fill_status(const struct weir_envoy_plan *plan, const struct weir_envoy_item *item,
                        struct weir_envoy_status *status)
{
    *status = (struct weir_envoy_status){.code = WEIR_ENVOY_OK};
    if (item->unlimited)
        status->limit_remaining = UINT32_MAX;
    if (item->parts == 0)
        return;
    const struct weir_envoy_part *part = telling_part(plan, item);
    uint64_t remaining = denied(part) ? 0 : part->report.remaining;
    if (denied(part) && (part->flags & WEIR_CHECK_SHADOW) == 0)
        status->code = WEIR_ENVOY_OVER_LIMIT;
    status->has_limit = true;
    status->limit_remaining = remaining < UINT32_MAX ? (uint32_t)remaining : UINT32_MAX;
    status->duration_until_reset_s = reset_of(part);
    if (item->rule) {
        const struct envoy_limit *limit = &item->rule->limits[part->index];
        status->requests_per_unit = limit->requests;
        status->unit = limit->unit;
        status->name = item->rule->name;
    } else {
        status->requests_per_unit = (uint32_t)part->limit->spec.rate;
        status->unit = unit_of_seconds(part->limit->spec.window_ns / NS_PER_SECOND);
    }
}

/* --- All of them ------------------------------------------------------------------------------ */

/* What decides the whole: the descriptors with quota_mode are over together, when all are; any
 * other one is over alone. */
struct count {
    uint32_t over, quota_over, quota;
    const struct weir_envoy_status *nearest; /* for the headers; NULL: none has a limit */
    uint32_t nearest_remaining;
};

static void count_status(const struct weir_envoy_plan *plan, uint32_t i,
                         const struct weir_envoy_status *status, struct count *count)
{
    const struct weir_envoy_item *item = &plan->items[i];
    if (status->has_limit && status->limit_remaining < count->nearest_remaining) {
        count->nearest = status;
        count->nearest_remaining = status->limit_remaining;
    }
    if (item->unlimited)
        return;
    bool quota = plan->envoy->options.quota_mode || (item->rule && item->rule->quota);
    bool over = status->code == WEIR_ENVOY_OVER_LIMIT;
    count->quota += quota;
    count->quota_over += quota && over;
    if (over && !quota) {
        count->over++;
        count->nearest = status;
        count->nearest_remaining = 0;
    }
}

static void set_header(struct weir_envoy_plan *plan, struct weir_envoy_header *header,
                       const char *name, const char *fallback, uint64_t number)
{
    char *text = envoy_plan_alloc(plan, NUMBER_MAX);
    const char *key = name ? name : fallback;
    int size = snprintf(text, NUMBER_MAX, "%llu", (unsigned long long)number);
    header->key = weir_bytes_of(key);
    header->value = (struct weir_bytes){text, (size_t)size};
}

static void set_headers(struct weir_envoy_plan *plan, const struct weir_envoy_status *of,
                        struct weir_envoy_response *response)
{
    const struct weir_envoy_options *options = &plan->envoy->options;
    set_header(plan, &response->headers[0], options->limit_header, "RateLimit-Limit",
               of->requests_per_unit);
    set_header(plan, &response->headers[1], options->remaining_header, "RateLimit-Remaining",
               of->limit_remaining);
    set_header(plan, &response->headers[2], options->reset_header, "RateLimit-Reset",
               of->duration_until_reset_s);
    response->header_count = 3;
}

/* --- The action ------------------------------------------------------------------------------- */

/* Whether a limit's use after the request has reached the mark of its descriptor. */
static bool is_marked(const struct weir_envoy_part *part, uint8_t percent)
{
    uint64_t capacity = part->limit->capacity, used = part->used;
    uint64_t cost = denied(part) ? 0 : part->cost;
    if (part->op != WEIR_OP_DECIDE || part->error != 0 || (part->flags & WEIR_CHECK_SHADOW) != 0)
        return false;
    if (denied(part) || used >= capacity || cost >= capacity - used)
        return true;
    return (used + cost) * 100 >= percent * capacity; /* capacities are below 2^42 */
}

static bool any_marked(const struct weir_envoy_plan *plan)
{
    for (uint32_t i = 0; i < plan->part_count; i++) {
        const struct weir_envoy_part *part = &plan->parts[i];
        const struct weir_envoy_rule *rule = plan->items[part->item].rule;
        if (rule && rule->mark != 0 && is_marked(part, rule->mark))
            return true;
    }
    return false;
}

/* X-Weir-Action: the client learns it, and so does the upstream where the request is admitted. */
static void set_action(const struct weir_envoy_plan *plan, bool shadowed,
                       struct weir_envoy_response *response)
{
    static const char name[] = "X-Weir-Action", mark[] = "mark", reject[] = "reject";
    struct weir_envoy_header header = {{name, sizeof name - 1}, {mark, sizeof mark - 1}};
    if (shadowed || !any_marked(plan))
        return;
    if (response->overall_code == WEIR_ENVOY_OVER_LIMIT)
        header.value = (struct weir_bytes){reject, sizeof reject - 1};
    else
        response->request_header = header;
    response->headers[response->header_count++] = header;
}

static bool store_failed(const struct weir_envoy_plan *plan)
{
    for (uint32_t i = 0; i < plan->part_count; i++)
        if (plan->parts[i].error != 0 && plan->parts[i].on_store_error == WEIR_ENVOY_STORE_FAIL)
            return true;
    return false;
}

size_t envoy_respond_size(const struct weir_envoy *envoy, const struct weir_envoy_request *request)
{
    return ENVOY_ALIGNED(request->descriptor_count * sizeof(struct weir_envoy_status)) +
           WEIR_ENVOY_HEADERS * ENVOY_ALIGNED(NUMBER_MAX) +
           (envoy->options.dynamic_metadata ? dynamic_size(envoy, request) : 0);
}

int weir_envoy_respond(struct weir_envoy_plan *plan, struct weir_envoy_response *response,
                       bool *shadowed)
{
    const struct weir_envoy_options *options = &plan->envoy->options;
    uint32_t descriptors = plan->request->descriptor_count;
    *shadowed = false;
    if (store_failed(plan))
        return WEIR_ERR_STORE;
    struct weir_envoy_status *statuses = envoy_plan_alloc(plan, descriptors * sizeof(*statuses));
    struct count count = {.nearest_remaining = UINT32_MAX};
    *response = (struct weir_envoy_response){
        .overall_code = WEIR_ENVOY_OK, .statuses = statuses, .status_count = descriptors};
    for (uint32_t i = 0; i < descriptors; i++) {
        fill_status(plan, &plan->items[i], &statuses[i]);
        count_status(plan, i, &statuses[i], &count);
    }
    if (count.over > 0 || (count.quota > 0 && count.quota == count.quota_over)) {
        *shadowed = options->shadow_mode;
        response->overall_code = options->shadow_mode ? WEIR_ENVOY_OK : WEIR_ENVOY_OVER_LIMIT;
    }
    if (options->headers && count.nearest)
        set_headers(plan, count.nearest, response);
    if (plan->envoy->marks)
        set_action(plan, *shadowed, response);
    if (options->dynamic_metadata)
        response->dynamic_metadata = dynamic_metadata(plan, statuses);
    return 0;
}

/* --- Counting --------------------------------------------------------------------------------- */

/* What of `to` lies beyond `from`. */
static uint64_t beyond(uint64_t to, uint64_t from)
{
    return to > from ? to - from : 0;
}

/* The original's rules: of hits that cross a line, only those beyond it count. */
static void tally_part(const struct weir_envoy_plan *plan, const struct weir_envoy_part *part,
                       struct weir_envoy_tally *tally)
{
    const struct weir_envoy_options *options = &plan->envoy->options;
    uint64_t limit = part->limit->capacity, hits = part->cost, before = part->used;
    uint64_t after = before > UINT64_MAX - hits ? UINT64_MAX : before + hits;
    uint64_t near = (uint64_t)((float)limit * options->near_limit_ratio);
    if (!denied(part)) {
        tally->within_limit += hits;
        tally->near_limit += before >= near ? beyond(after, before) : beyond(after, near);
        return;
    }
    bool before_over = before >= limit;
    uint64_t over = before_over ? hits : beyond(after, limit);
    tally->over_limit += over;
    if (options->count_local && before > limit)
        tally->over_limit_with_local_cache += hits;
    if (!before_over)
        tally->near_limit += beyond(limit, before > near ? before : near);
    if ((part->flags & WEIR_CHECK_SHADOW) != 0)
        tally->shadow_mode += over;
}

void weir_envoy_tally(const struct weir_envoy_plan *plan, uint32_t at,
                      struct weir_envoy_tally *tally)
{
    const struct weir_envoy_item *item = &plan->items[at];
    *tally = (struct weir_envoy_tally){0};
    if (item->unlimited) { /* the original counts nothing here */
        tally->total_hits = tally->within_limit = item->hits;
        return;
    }
    if (item->parts == 0)
        return;
    const struct weir_envoy_part *part = telling_part(plan, item);
    if (part->op == WEIR_OP_REFUND) {
        tally->total_negative_hits = part->cost;
        return;
    }
    tally->total_hits = part->cost;
    tally_part(plan, part, tally);
}
