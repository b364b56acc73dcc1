/* SPDX-License-Identifier: Apache-2.0 */
/* see json.h */
#include "feature/standing/server/json.h"

static json_t *time_json(uint64_t time_ns)
{
    return time_ns == WEIR_NEVER ? json_null() : json_integer((json_int_t)(time_ns / 1000000));
}

json_t *weir_standing_text_json(struct weir_bytes text)
{
    json_t *json = json_stringn(text.data ? text.data : "", text.size);

    return json ? json : json_string("(not UTF-8)");
}

json_t *weir_standing_json(const struct weir_standing_entry *entry)
{
    struct weir_bytes reason = {entry->reason, entry->reason_size};

    return json_pack("{s:s, s:s, s:o, s:o, s:o}", "level", weir_standing_level_name(entry->level),
                     "origin", weir_standing_origin_name(entry->origin), "since_ms",
                     time_json(entry->since_ns), "until_ms", time_json(entry->until_ns), "reason",
                     weir_standing_text_json(reason));
}

void weir_standing_add_entry(void *context, const struct weir_history_entry *entry)
{
    json_t *object = json_pack("{s:o, s:o}", "kind", weir_standing_text_json(entry->kind), "value",
                               weir_standing_text_json(entry->value));
    json_t *rest = weir_standing_json(&entry->entry);

    json_object_update(object, rest);
    json_decref(rest);
    json_object_set_new(object, "by", weir_standing_text_json(entry->by));
    json_array_append_new(context, object);
}

static json_t *level_json(int level)
{
    const char *name = level < 0 ? NULL : weir_standing_level_name((uint8_t)level);

    return name ? json_string(name) : json_null();
}

void weir_standing_add_row(void *context, const struct weir_history_row *row)
{
    const struct weir_standing_entry *to = &row->to.entry;
    struct weir_bytes reason = {to->reason, to->reason_size};

    json_array_append_new(
        context,
        json_pack("{s:o, s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o}", "at_ms", time_json(row->at_ns),
                  "kind", weir_standing_text_json(row->to.kind), "value",
                  weir_standing_text_json(row->to.value), "origin",
                  weir_standing_origin_name(to->origin), "was", level_json(row->was), "level",
                  level_json(row->level), "until_ms", time_json(to->until_ns), "reason",
                  weir_standing_text_json(reason), "by", weir_standing_text_json(row->to.by)));
}
