/* SPDX-License-Identifier: Apache-2.0 */
/* see directory_record.h */
#include "feature/identity/server/directory_record.h"
#include "core/bytes.h"

#include <stdlib.h>
#include <string.h>

#include "core/text/reason.h"
#include "store/redis/client/refusal.h"

#define LIMIT_FIELD "limit."
#define LIMIT_FIELD_SIZE (sizeof LIMIT_FIELD - 1)
/* Before an override: the sizes of its name, less one, and of its text, less one. */
#define HEAD_BYTES 2

/* What the fields of a reply say; texts point into the reply. */
struct fields {
    struct weir_bytes user, org, plan;
    struct weir_bytes limits[WEIR_OVERRIDES_MAX], texts[WEIR_OVERRIDES_MAX];
    uint32_t limit_count;
    struct weir_reason *problem;
};

static void tell(struct weir_reason *problem, const char *text)
{
    if (problem->text[0] == '\0')
        reason_text(problem, text);
}

static void tell_size(struct weir_reason *problem, const char *what, uint64_t most)
{
    if (problem->text[0] != '\0')
        return;
    reason_text(problem, what);
    reason_text(problem, " must have 1 to ");
    reason_number(problem, most);
    reason_text(problem, " bytes");
}

/* A text of 1 to `most` bytes; else it is as if it were not there. */
static void take(struct fields *fields, struct weir_bytes *field, struct weir_bytes value,
                 size_t most, const char *what)
{
    if (value.size >= 1 && value.size <= most)
        *field = value;
    else
        tell_size(fields->problem, what, most);
}

static void take_limit(struct fields *fields, struct weir_bytes limit, struct weir_bytes text)
{
    if (limit.size < 1 || limit.size > WEIR_OVERRIDE_NAME_MAX)
        tell_size(fields->problem, "limit.NAME: a limit's name", WEIR_OVERRIDE_NAME_MAX);
    else if (text.size < 1 || text.size > WEIR_OVERRIDE_TEXT_MAX)
        tell_size(fields->problem, "limit.NAME: an override", WEIR_OVERRIDE_TEXT_MAX);
    else if (fields->limit_count == WEIR_OVERRIDES_MAX)
        tell(fields->problem, "too many overrides");
    else {
        fields->limits[fields->limit_count] = limit;
        fields->texts[fields->limit_count++] = text;
    }
}

static void take_field(struct fields *fields, struct weir_bytes name, struct weir_bytes value)
{
    if (weir_bytes_are(name, "user"))
        take(fields, &fields->user, value, WEIR_IDENTITY_MAX, "user");
    else if (weir_bytes_are(name, "org"))
        take(fields, &fields->org, value, WEIR_IDENTITY_MAX, "org");
    else if (weir_bytes_are(name, "plan"))
        take(fields, &fields->plan, value, WEIR_PLAN_NAME_MAX, "plan");
    else if (name.size > LIMIT_FIELD_SIZE && memcmp(name.data, LIMIT_FIELD, LIMIT_FIELD_SIZE) == 0)
        take_limit(fields,
                   (struct weir_bytes){name.data + LIMIT_FIELD_SIZE, name.size - LIMIT_FIELD_SIZE},
                   value);
}

static bool is_text(const struct weir_resp_node *node)
{
    return node->depth == 1 && (node->type == WEIR_RESP_BULK || node->type == WEIR_RESP_SIMPLE);
}

/* Where the texts begin. */
static char *texts_of(const struct weir_directory_record *record)
{
    return (char *)(uintptr_t)&record->overrides[record->text_count];
}

static struct weir_bytes put(char **at, struct weir_bytes text)
{
    struct weir_bytes kept = {*at, text.size};
    if (!text.data)
        return text;
    memcpy(*at, text.data, text.size);
    *at += text.size;
    return kept;
}

/* NULL: no memory. */
static struct weir_directory_record *make(const struct fields *fields)
{
    size_t size = fields->user.size + fields->org.size + fields->plan.size;
    for (uint32_t i = 0; i < fields->limit_count; i++)
        size += HEAD_BYTES + fields->limits[i].size + fields->texts[i].size;
    struct weir_directory_record *record =
        malloc(sizeof *record + fields->limit_count * sizeof *record->overrides + size);
    if (!record)
        return NULL;
    *record = (struct weir_directory_record){.text_count = fields->limit_count, .size = size};
    char *at = texts_of(record);
    for (uint32_t i = 0; i < fields->limit_count; i++) {
        *at++ = (char)(fields->limits[i].size - 1);
        *at++ = (char)(fields->texts[i].size - 1);
        put(&at, fields->limits[i]);
        put(&at, fields->texts[i]);
    }
    record->user = put(&at, fields->user);
    record->org = put(&at, fields->org);
    record->plan = put(&at, fields->plan);
    return record;
}

int weir_directory_record_read(const struct weir_resp_node *nodes, uint32_t count,
                               struct weir_directory_record **record, struct weir_reason *problem)
{
    struct fields fields = {.problem = problem};
    *record = NULL;
    problem->text[0] = '\0';
    if (nodes[0].type == WEIR_RESP_ERROR && nodes[0].text.size >= 9 &&
        memcmp(nodes[0].text.data, "WRONGTYPE", 9) == 0) {
        tell(problem, "it is not a hash");
        return 0;
    }
    if (nodes[0].type != WEIR_RESP_ARRAY && nodes[0].type != WEIR_RESP_MAP) {
        redis_quote(problem->text, sizeof problem->text, nodes[0].text);
        tell(problem, "the reply is not a hash");
        return WEIR_ERR_STORE;
    }
    for (uint32_t i = 1; i < count; i += 2) {
        if (i + 1 == count || !is_text(&nodes[i]) || !is_text(&nodes[i + 1])) {
            tell(problem, "the reply is not a hash");
            return WEIR_ERR_STORE;
        }
        take_field(&fields, nodes[i].text, nodes[i + 1].text);
    }
    if (count > 1 && !fields.user.data)
        tell(problem, "user is missing");
    if (!fields.user.data)
        return 0;
    *record = make(&fields);
    return *record ? 1 : WEIR_ERR_MEMORY;
}

static bool same(struct weir_bytes a, struct weir_bytes b)
{
    return a.size == b.size && !a.data == !b.data;
}

bool weir_directory_record_equal(const struct weir_directory_record *a,
                                 const struct weir_directory_record *b)
{
    return a->text_count == b->text_count && a->size == b->size && same(a->user, b->user) &&
           same(a->org, b->org) && same(a->plan, b->plan) &&
           memcmp(texts_of(a), texts_of(b), a->size) == 0;
}

bool weir_directory_record_next(const struct weir_directory_record *record, size_t *at,
                                struct weir_bytes *limit, struct weir_bytes *text)
{
    const char *texts = texts_of(record);
    if (texts + *at == record->user.data)
        return false;
    limit->size = (size_t)(unsigned char)texts[*at] + 1;
    text->size = (size_t)(unsigned char)texts[*at + 1] + 1;
    limit->data = texts + *at + HEAD_BYTES;
    text->data = limit->data + limit->size;
    *at += HEAD_BYTES + limit->size + text->size;
    return true;
}
