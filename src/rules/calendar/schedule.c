/* SPDX-License-Identifier: Apache-2.0 */
/* see schedule.h */
#include "rules/calendar/schedule.h"

#include <stdlib.h>
#include <string.h>

#include "rules/calendar/calendar.h"

#define NS UINT64_C(1000000000)
#define DAY 86400
#define DAY_MINUTES 1440
#define EVERY_DAY 0x7F
/* Of one day of UTC: both ends of every range, under the offsets before and after a change. */
#define CANDIDATES_MAX (4 * RULES_HOURS_MAX + 1)

/* --- What is written -------------------------------------------------------------------------- */

/* Cuts the text before `separator` off the front. */
static struct weir_bytes cut(struct weir_bytes *text, char separator)
{
    const char *end = memchr(text->data, separator, text->size);
    struct weir_bytes piece = {text->data, end ? (size_t)(end - text->data) : text->size};
    size_t used = piece.size + (end != NULL);
    text->data += used;
    text->size -= used;
    return piece;
}

/* "Mon-Fri,Sun" */
static bool days_parse(struct weir_bytes word, uint8_t *days)
{
    bool more = true;
    *days = 0;
    while (more) {
        more = memchr(word.data, ',', word.size);
        struct weir_bytes range = cut(&word, ',');
        struct weir_bytes name = cut(&range, '-');
        int from = rules_weekday_parse(name),
            to = range.data > name.data + name.size ? rules_weekday_parse(range) : from;
        if (from < 0 || to < 0)
            return false;
        for (int day = from;; day = (day + 1) % 7) {
            *days |= (uint8_t)(1 << day);
            if (day == to)
                break;
        }
    }
    return true;
}

/* "09:30", up to `most`: minutes, or -1. */
static int minutes_parse(struct weir_bytes text, int most)
{
    int digits[4] = {0}, n = 0;
    for (size_t i = 0; i < text.size; i++) {
        if (i == 2 ? text.data[i] != ':' : text.data[i] < '0' || text.data[i] > '9')
            return -1;
        if (i != 2 && n < 4)
            digits[n++] = text.data[i] - '0';
    }
    if (text.size != 5 || digits[2] > 5)
        return -1;
    int minutes = (digits[0] * 10 + digits[1]) * 60 + digits[2] * 10 + digits[3];
    return minutes <= most ? minutes : -1;
}

/* "09:00-12:00,13:00-18:00" on these days. */
static int ranges_parse(struct weir_bytes word, uint8_t days, struct rules_hours *hours,
                        uint32_t *count)
{
    bool more = true;
    while (more) {
        more = memchr(word.data, ',', word.size);
        struct weir_bytes range = cut(&word, ',');
        struct weir_bytes begin = cut(&range, '-');
        int from = minutes_parse(begin, DAY_MINUTES - 1), to = minutes_parse(range, DAY_MINUTES);
        if (from < 0 || to < 0 || from == to)
            return WEIR_ERR_SYNTAX;
        if (*count == RULES_HOURS_MAX)
            return WEIR_ERR_TOO_LARGE;
        hours[(*count)++] = (struct rules_hours){days, (uint16_t)from, (uint16_t)to};
    }
    return 0;
}

/* The next word; size 0: none. */
static struct weir_bytes next_word(struct weir_bytes *text)
{
    struct weir_bytes word = {text->data, 0};
    while (text->size > 0 && word.size == 0)
        word = cut(text, ' ');
    return word;
}

int rules_hours_parse(struct rules_hours hours[RULES_HOURS_MAX], uint32_t *count,
                      struct weir_bytes *zone, struct weir_bytes text)
{
    struct weir_bytes word = next_word(&text);
    uint8_t days = EVERY_DAY;
    bool some = word.size > 0 && days_parse(word, &days);
    int err;
    if (some)
        word = next_word(&text);
    days = some ? days : EVERY_DAY;
    if (word.size > 0 && word.data[0] >= '0' && word.data[0] <= '9') {
        err = ranges_parse(word, days, hours, count);
        word = next_word(&text);
    } else if (!some) {
        return WEIR_ERR_SYNTAX;
    } else {
        static const char whole[] = "00:00-24:00";
        err = ranges_parse((struct weir_bytes){whole, sizeof(whole) - 1}, days, hours, count);
    }
    *zone = word.size > 0 ? word : (struct weir_bytes){NULL, 0};
    return err == 0 && next_word(&text).size > 0 ? WEIR_ERR_SYNTAX : err;
}

/* --- What it means ---------------------------------------------------------------------------- */

/* Whether the wall's time is in one of the ranges. */
static bool holds(const struct rules_hours *hours, uint32_t count, int64_t wall_s)
{
    int64_t day = wall_s / DAY;
    int minute = (int)(wall_s % DAY / 60), today = rules_weekday(day), before = (today + 6) % 7;
    for (uint32_t i = 0; i < count; i++) {
        const struct rules_hours *h = &hours[i];
        bool here = (h->days >> today & 1) != 0, earlier = (h->days >> before & 1) != 0;
        bool over = h->to <= h->from;
        if ((here && minute >= h->from && (over || minute < h->to)) ||
            (earlier && over && minute < h->to))
            return true;
    }
    return false;
}

static int compare_times(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* When within the day of UTC that begins at `day_s` the wall, `offset` east, shows an end of a
 * range. */
static uint32_t ends_of_day(const struct rules_hours *hours, uint32_t count, int64_t day_s,
                            int32_t offset, int64_t *times)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < 2 * count; i++) {
        const struct rules_hours *h = &hours[i / 2];
        int64_t second = (i % 2 == 0 ? h->from : h->to) * INT64_C(60) - offset;
        times[n++] = day_s + ((second % DAY) + DAY) % DAY;
    }
    return n;
}

/* The moment in (day_s, day_s + DAY] from which on the offset is that of the day's end. */
static int64_t change_of_day(const struct rules_zone *zone, int64_t day_s, int32_t after)
{
    int64_t low = day_s, high = day_s + DAY;
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (rules_zone_offset(zone, middle) == after)
            high = middle;
        else
            low = middle;
    }
    return high;
}

static int append(struct rules_schedule *schedule, uint32_t *room, uint64_t at_ns)
{
    if (schedule->count == *room) {
        uint32_t wanted = *room > 0 ? *room * 2 : 1024;
        uint64_t *more = realloc(schedule->changes, wanted * sizeof(*more));
        if (!more)
            return WEIR_ERR_MEMORY;
        schedule->changes = more;
        *room = wanted;
    }
    schedule->changes[schedule->count++] = at_ns;
    return 0;
}

static void clear(struct rules_schedule *schedule)
{
    free(schedule->changes);
    *schedule = (struct rules_schedule){NULL, 0, false};
}

int rules_schedule_make(struct rules_schedule *schedule, const struct rules_hours *hours,
                        uint32_t count, const struct rules_zone *zone)
{
    uint32_t room = 0;
    int32_t offset = rules_zone_offset(zone, RULES_CALENDAR_FROM_S);
    bool now = holds(hours, count, RULES_CALENDAR_FROM_S + offset);
    *schedule = (struct rules_schedule){NULL, 0, now};
    for (int64_t day_s = RULES_CALENDAR_FROM_S; day_s < RULES_CALENDAR_TO_S; day_s += DAY) {
        int64_t times[CANDIDATES_MAX];
        int32_t after = rules_zone_offset(zone, day_s + DAY);
        uint32_t n = ends_of_day(hours, count, day_s, offset, times);
        int64_t change_s = INT64_MAX;
        if (after != offset) {
            change_s = change_of_day(zone, day_s, after);
            times[n++] = change_s;
            n += ends_of_day(hours, count, day_s, after, times + n);
        }
        qsort(times, n, sizeof(*times), compare_times);
        for (uint32_t i = 0; i < n; i++) {
            int64_t wall_s = times[i] + (times[i] >= change_s ? after : offset);
            if (holds(hours, count, wall_s) == now)
                continue;
            now = !now;
            if (append(schedule, &room, (uint64_t)times[i] * NS) < 0) {
                clear(schedule);
                return WEIR_ERR_MEMORY;
            }
        }
        offset = after;
    }
    return 0;
}

int rules_schedule_join(struct rules_schedule *schedule, struct rules_schedule *other)
{
    struct rules_schedule sum = {NULL, 0, schedule->first || other->first};
    bool a = schedule->first, b = other->first, now = sum.first;
    uint32_t i = 0, j = 0, room = 0;
    while (i < schedule->count || j < other->count) {
        uint64_t x = i < schedule->count ? schedule->changes[i] : UINT64_MAX;
        uint64_t y = j < other->count ? other->changes[j] : UINT64_MAX;
        uint64_t at_ns = x < y ? x : y;
        if (x == at_ns) {
            a = !a;
            i++;
        }
        if (y == at_ns) {
            b = !b;
            j++;
        }
        if ((a || b) == now)
            continue;
        now = !now;
        if (append(&sum, &room, at_ns) < 0) {
            clear(&sum);
            return WEIR_ERR_MEMORY;
        }
    }
    clear(schedule);
    clear(other);
    *schedule = sum;
    return 0;
}

bool rules_schedule_at(const struct rules_schedule *schedule, uint64_t now_ns, uint64_t *from_ns,
                       uint64_t *until_ns)
{
    uint32_t low = 0, high = schedule->count; /* how many changes are not later than now */
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (schedule->changes[middle] <= now_ns)
            low = middle + 1;
        else
            high = middle;
    }
    *from_ns = low > 0 ? schedule->changes[low - 1] : 0;
    *until_ns = low < schedule->count ? schedule->changes[low] : UINT64_MAX;
    return schedule->first != (low % 2 != 0);
}
