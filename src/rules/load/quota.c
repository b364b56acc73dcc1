/* SPDX-License-Identifier: Apache-2.0 */
/* `quota`, `timezone`, `anchor` and `rollover`; see loader.h */
#include <stdlib.h>
#include <string.h>

#include "core/siphash.h"
#include "rules/calendar/calendar.h"
#include "rules/load/loader.h"
#include "rules/load/numbers.h"

#define NS UINT64_C(1000000000)

static const char *const units[] = {"day", "week", "month", "year"};

/* --- What is written -------------------------------------------------------------------------- */

/* Two digits and a separator: "06:" */
static bool two_digits(const char *text, int32_t *value)
{
    if (text[0] < '0' || text[0] > '9' || text[1] < '0' || text[1] > '9')
        return false;
    *value = (text[0] - '0') * 10 + text[1] - '0';
    return true;
}

static bool anchor_time(struct weir_bytes word, struct rules_calendar *calendar)
{
    return word.size == 5 && word.data[2] == ':' && two_digits(word.data, &calendar->hour) &&
           two_digits(word.data + 3, &calendar->minute) && calendar->hour < 24 &&
           calendar->minute < 60;
}

/* The part of an anchor that is a day, in the words of its unit. */
static bool anchor_day(struct weir_bytes word, struct rules_calendar *calendar)
{
    uint64_t day;
    switch (calendar->unit) {
    case RULES_WEEKLY:
        calendar->weekday = rules_weekday_parse(word);
        return calendar->weekday >= 0;
    case RULES_MONTHLY:
        if (word.size > 2 || weir_digits_parse(&day, word.data, word.size) != (int)word.size ||
            day < 1 || day > 31)
            return false;
        calendar->day = (int32_t)day;
        return true;
    case RULES_YEARLY:
        return word.size == 5 && word.data[2] == '-' && two_digits(word.data, &calendar->month) &&
               two_digits(word.data + 3, &calendar->day) && calendar->month >= 1 &&
               calendar->month <= 12 && calendar->day >= 1 &&
               calendar->day <= rules_month_length(2024, calendar->month);
    default:
        return false;
    }
}

/* A day, a time of day, or both in this order. */
static bool read_anchor(struct rules_loader *loader, const struct rules_node *node,
                        struct rules_calendar *calendar)
{
    static const char *const examples[] = {"`06:00`", "`monday` or `mon 06:00`",
                                           "`15` or `15 06:00`", "`04-06` or `04-06 06:00`"};
    struct weir_bytes text;
    struct rules_quote quote;
    if (!rules_read_text(loader, node, "anchor", &text))
        return false;
    const char *space = memchr(text.data, ' ', text.size);
    size_t first = space != NULL ? (size_t)(space - text.data) : text.size;
    struct weir_bytes day = {text.data, first};
    bool good;
    if (space != NULL) {
        struct weir_bytes time = {space + 1, text.size - first - 1};
        good = anchor_day(day, calendar) && anchor_time(time, calendar);
    } else {
        good = anchor_day(day, calendar) || anchor_time(day, calendar);
    }
    if (!good) {
        rules_problem(loader, node, "%s is no anchor of a %s; allowed is %s",
                      rules_quote(&quote, text.data, text.size), units[calendar->unit],
                      examples[calendar->unit]);
    }
    return good;
}

bool rules_read_rollover(struct rules_loader *loader, const struct rules_node *node, uint64_t most,
                         struct rules_rollover *rollover)
{
    struct weir_bytes text;
    struct weir_reason reason = {{0}};
    if (!rules_read_text(loader, node, "rollover", &text))
        return false;
    if (rules_rollover_parse(text, most, rollover, &reason) < 0) {
        rules_problem(loader, node, "%s", reason.text);
        return false;
    }
    return true;
}

/* --- Calendars -------------------------------------------------------------------------------- */

/* One calendar of the file: shared by all limits that count in it. */
struct rules_bounds {
    struct rules_bounds *next;
    uint64_t name;
    const uint64_t *bounds;
    uint32_t count;
};

/* What tells this calendar from others, on every node and in every state file. */
static uint64_t calendar_name(const struct rules_calendar *calendar, struct weir_bytes zone)
{
    const uint64_t key[2] = {0, 0};
    int32_t words[6 + (RULES_ZONE_NAME_MAX + 3) / 4] = {calendar->unit, calendar->month,
                                                        calendar->day,  calendar->weekday,
                                                        calendar->hour, calendar->minute};
    uint64_t hash[2];
    memcpy(&words[6], zone.data, zone.size);
    weir_siphash128(key, words, sizeof(words), hash);
    return hash[0];
}

static const struct rules_bounds *make_bounds(struct rules_loader *loader,
                                              const struct rules_calendar *calendar,
                                              const struct rules_zone *zone, uint64_t name)
{
    int64_t *begins = malloc(RULES_CALENDAR_BOUNDS_MAX * sizeof(*begins));
    struct rules_bounds *made = rules_borrow(loader, sizeof(*made));
    if (begins == NULL || made == NULL) {
        loader->no_memory = true;
        free(begins);
        return NULL;
    }
    made->name = name;
    made->count = rules_calendar_bounds(calendar, zone, RULES_CALENDAR_FROM_S, RULES_CALENDAR_TO_S,
                                        begins, RULES_CALENDAR_BOUNDS_MAX);
    uint64_t *bounds = rules_keep(loader, made->count * sizeof(*bounds));
    for (uint32_t i = 0; bounds != NULL && i < made->count; i++)
        bounds[i] = (uint64_t)begins[i] * NS;
    free(begins);
    made->bounds = bounds;
    made->next = loader->calendars;
    loader->calendars = made;
    return bounds != NULL ? made : NULL;
}

static const struct rules_bounds *bounds_of(struct rules_loader *loader,
                                            const struct rules_node *node,
                                            const struct rules_calendar *calendar)
{
    struct weir_bytes name = {"UTC", 3};
    struct weir_reason reason = {{0}};
    struct rules_zone *zone;
    if (node == NULL)
        node = loader->timezone;
    if (node != NULL && !rules_read_text(loader, node, "timezone", &name))
        return NULL;
    uint64_t hash = name.size <= RULES_ZONE_NAME_MAX ? calendar_name(calendar, name) : 0;
    for (const struct rules_bounds *b = loader->calendars; b != NULL; b = b->next)
        if (b->name == hash)
            return b;
    int err = rules_zone_open(&zone, name, &reason);
    if (err < 0) {
        if (err == WEIR_ERR_MEMORY)
            loader->no_memory = true;
        else
            rules_problem(loader, node, "%s", reason.text);
        return NULL;
    }
    const struct rules_bounds *bounds = make_bounds(loader, calendar, zone, hash);
    rules_zone_close(zone);
    return bounds;
}

bool rules_load_quota(struct rules_loader *loader, const struct rules_field *fields, uint8_t unit,
                      struct weir_limit_spec *spec)
{
    struct rules_calendar calendar = {.unit = unit, .month = 1, .day = 1};
    const struct rules_node *anchor = fields[RULES_LIMIT_ANCHOR].value;
    const struct rules_node *rollover = fields[RULES_LIMIT_ROLLOVER].value;
    if (anchor != NULL && !read_anchor(loader, anchor, &calendar))
        return false;
    struct rules_rollover over = {0, false};
    if (rollover != NULL && !rules_read_rollover(loader, rollover, spec->rate, &over))
        return false;
    spec->rollover = rules_rollover_of(&over, spec->rate);
    const struct rules_bounds *bounds =
        bounds_of(loader, fields[RULES_LIMIT_TIMEZONE].value, &calendar);
    if (bounds == NULL)
        return false;
    spec->window_ns = rules_unit_ns(unit);
    spec->calendar = bounds->name;
    spec->bounds = bounds->bounds;
    spec->bound_count = bounds->count;
    return true;
}
