/* SPDX-License-Identifier: Apache-2.0 */
/* see when.h */
#include "rules/load/limit/when.h"

#include <stdlib.h>
#include <string.h>

#include "rules/calendar/schedule.h"

#define SCHEDULE_EXAMPLE "`Mon-Fri 09:00-18:00 Europe/Zurich`, `Sat,Sun`, `22:00-06:00`"
#define WHEN_TEXT_MAX 256 /* of a whole `when`, in reports */

/* Opens a zone; NULL after a problem. */
static struct rules_zone *open_zone(struct rules_loader *loader, const struct rules_node *node,
                                    struct weir_bytes name)
{
    struct weir_reason reason = {{0}};
    struct rules_zone *zone = NULL;
    int err = rules_zone_open(&zone, name, &reason);
    if (err == WEIR_ERR_MEMORY)
        loader->no_memory = true;
    else if (err < 0)
        rules_problem(loader, node, "%s", reason.text);
    return err < 0 ? NULL : zone;
}

void rules_load_timezone(struct rules_loader *loader, const struct rules_node *node)
{
    struct weir_bytes name;
    if (!rules_read_text(loader, node, "timezone", &name))
        return;
    struct rules_zone *zone = open_zone(loader, node, name);
    if (zone) {
        loader->timezone = node;
        rules_zone_close(zone);
    }
}

/* One text into a schedule; false after a problem. */
static bool make_schedule(struct rules_loader *loader, const struct rules_node *node,
                          struct weir_bytes text, struct rules_schedule *schedule)
{
    struct rules_hours hours[RULES_HOURS_MAX];
    struct rules_quote quote;
    struct weir_bytes name;
    uint32_t count = 0;
    int err = rules_hours_parse(hours, &count, &name, text);
    rules_quote(&quote, text.data, text.size);
    if (err == WEIR_ERR_TOO_LARGE) {
        rules_problem(loader, node, "%s has more than %d ranges of hours", quote.text,
                      RULES_HOURS_MAX);
        return false;
    }
    if (err < 0) {
        rules_problem(loader, node, "%s is not a schedule; allowed are " SCHEDULE_EXAMPLE,
                      quote.text);
        return false;
    }
    if (!name.data) {
        name = loader->timezone
                   ? (struct weir_bytes){loader->timezone->text, loader->timezone->size}
                   : (struct weir_bytes){"UTC", 3};
    }
    struct rules_zone *zone = open_zone(loader, node, name);
    if (!zone)
        return false;
    err = rules_schedule_make(schedule, hours, count, zone);
    rules_zone_close(zone);
    loader->no_memory |= err < 0;
    return err == 0;
}

/* The texts of a `when`, as messages show them: with "; " between them. */
static const char *whole_text(struct rules_loader *loader, const struct rules_items *items)
{
    char text[WHEN_TEXT_MAX];
    size_t used = 0;
    for (uint32_t i = 0; i < items->count && items->items[i]->kind == RULES_SCALAR; i++) {
        const struct rules_node *item = items->items[i];
        size_t size = item->size + (i > 0 ? 2 : 0);
        if (size > sizeof(text) - used)
            return NULL;
        memcpy(text + used, "; ", i > 0 ? 2 : 0);
        memcpy(text + used + size - item->size, item->text, item->size);
        used += size;
    }
    return rules_keep_text(loader, text, used);
}

/* All texts of a `when` into one schedule, which is the caller's; false after a problem. */
static bool join_schedules(struct rules_loader *loader, const struct rules_items *items,
                           struct rules_schedule *sum)
{
    bool good = true;
    for (uint32_t i = 0; i < items->count && !loader->no_memory; i++) {
        struct rules_schedule one = {NULL, 0, false};
        struct weir_bytes text;
        if (!rules_read_text(loader, items->items[i], "when", &text) ||
            !make_schedule(loader, items->items[i], text, &one)) {
            good = false;
            continue;
        }
        if (rules_schedule_join(sum, &one) < 0) {
            loader->no_memory = true;
            free(one.changes);
        }
    }
    return good && !loader->no_memory;
}

/* Keeps a schedule among those of the file. */
static void keep_schedule(struct rules_loader *loader, const struct rules_schedule *schedule,
                          const char *text)
{
    struct weir_rules *rules = loader->rules;
    struct rules_named_schedule *kept = &rules->schedules[rules->schedule_count];
    kept->schedule = *schedule;
    kept->text = text;
    kept->schedule.changes = rules_keep(loader, schedule->count * sizeof(*schedule->changes));
    if (kept->schedule.changes) {
        memcpy(kept->schedule.changes, schedule->changes,
               schedule->count * sizeof(*schedule->changes));
        rules->schedule_count++;
    }
}

void rules_load_when(struct rules_loader *loader, const struct rules_field *field,
                     struct rules_rule *rule)
{
    struct weir_rules *rules = loader->rules;
    struct rules_items items = rules_items_of(&field->value);
    struct rules_schedule sum = {NULL, 0, false};
    if (field->value->kind == RULES_MAP || items.count == 0) {
        rules_problem(loader, field->value,
                      "`when` must be a schedule or a list: " SCHEDULE_EXAMPLE);
        return;
    }
    const char *text = whole_text(loader, &items);
    if (!text) {
        if (!loader->no_memory)
            rules_problem(loader, field->value, "`when` is longer than %d bytes", WHEN_TEXT_MAX);
        return;
    }
    for (uint32_t i = 0; i < rules->schedule_count; i++) {
        if (strcmp(rules->schedules[i].text, text) == 0) {
            rule->when = UINT64_C(1) << i;
            return;
        }
    }
    if (rules->schedule_count == RULES_SCHEDULES_MAX) {
        rules_problem(loader, field->value, "more than %d different schedules in this file",
                      RULES_SCHEDULES_MAX);
    } else if (join_schedules(loader, &items, &sum)) {
        if (sum.count == 0) {
            rules_problem(loader, field->value, "`when` covers all times; remove it");
        } else {
            rule->when = UINT64_C(1) << rules->schedule_count;
            keep_schedule(loader, &sum, text);
        }
    }
    free(sum.changes);
}
