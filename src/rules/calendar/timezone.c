/* SPDX-License-Identifier: Apache-2.0 */
/* see timezone.h */
#include "rules/calendar/timezone.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "rules/calendar/posix_zone.h"

#define FILE_BYTES_MAX (256 * 1024)
#define TRANSITIONS_MAX 8192
#define TYPES_MAX 256
#define HEADER_BYTES 44

struct rules_zone {
    uint32_t count;  /* of transitions */
    int32_t first;   /* offset before the first of them */
    int64_t *at_s;   /* in order */
    int32_t *offset; /* from each one on */
    bool ruled;      /* `rule` holds after the last transition */
    struct posix_zone rule;
};

/* --- Moments ---------------------------------------------------------------------------------- */

/* How many transitions have happened at a moment. */
static uint32_t transitions_before(const struct rules_zone *zone, int64_t at_s)
{
    uint32_t low = 0, high = zone->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (zone->at_s[middle] <= at_s)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int32_t rules_zone_offset(const struct rules_zone *zone, int64_t at_s)
{
    uint32_t passed = transitions_before(zone, at_s);
    if (passed == zone->count && zone->ruled)
        return posix_zone_offset(&zone->rule, at_s);
    return passed > 0 ? zone->offset[passed - 1] : zone->first;
}

void rules_zone_civil(const struct rules_zone *zone, int64_t at_s, struct rules_civil *civil)
{
    int64_t local = at_s + rules_zone_offset(zone, at_s);
    int64_t days = local / 86400 - (local % 86400 < 0);
    int32_t rest = (int32_t)(local - days * 86400);
    rules_civil_of_days(days, civil);
    civil->hour = rest / 3600;
    civil->minute = rest / 60 % 60;
    civil->second = rest % 60;
}

/* The first moment in (from, to] at which the offset is another than at `from`; `to` if there is
 * none. Within the listed transitions each is looked at; what the rule says after them changes a
 * few times a year, so that it suffices to halve. */
static int64_t offset_ends(const struct rules_zone *zone, int64_t from, int64_t to)
{
    int32_t offset = rules_zone_offset(zone, from);
    uint32_t i = transitions_before(zone, from);
    while (i < zone->count && zone->at_s[i] < to && zone->offset[i] == offset)
        i++;
    if (i < zone->count && zone->at_s[i] < to)
        return zone->at_s[i];
    if (rules_zone_offset(zone, to) == offset)
        return to;
    int64_t low = from, high = to;
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (rules_zone_offset(zone, middle) == offset)
            low = middle;
        else
            high = middle;
    }
    return high;
}

/* Walks from a moment that is surely before it, one stretch of equal offset at a time. */
int64_t rules_zone_moment(const struct rules_zone *zone, const struct rules_civil *civil)
{
    int64_t days = rules_civil_days(civil->year, civil->month, civil->day);
    int64_t local =
        days * 86400 + (int64_t)civil->hour * 3600 + (int64_t)civil->minute * 60 + civil->second;
    int64_t from = local - 2 * POSIX_ZONE_OFFSET_MAX;
    for (;;) {
        int32_t offset = rules_zone_offset(zone, from);
        int64_t wanted = local - offset;
        if (wanted <= from)
            return from; /* clocks were set forward over it */
        from = offset_ends(zone, from, wanted);
        if (from == wanted && rules_zone_offset(zone, wanted) == offset)
            return wanted;
    }
}

/* --- TZif ------------------------------------------------------------------------------------- */

struct tzif {
    const uint8_t *at, *end;
};

static uint32_t take32(struct tzif *tzif)
{
    const uint8_t *p = tzif->at;
    tzif->at += 4;
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static int64_t take64(struct tzif *tzif)
{
    uint64_t high = take32(tzif);
    return (int64_t)(high << 32 | take32(tzif));
}

struct counts {
    uint32_t utc, standard, leap, times, types, chars;
};

static bool take_header(struct tzif *tzif, struct counts *counts)
{
    if (tzif->end - tzif->at < HEADER_BYTES || memcmp(tzif->at, "TZif", 4) != 0 ||
        tzif->at[4] < '2')
        return false;
    tzif->at += 20;
    counts->utc = take32(tzif);
    counts->standard = take32(tzif);
    counts->leap = take32(tzif);
    counts->times = take32(tzif);
    counts->types = take32(tzif);
    counts->chars = take32(tzif);
    return counts->times <= TRANSITIONS_MAX && counts->types <= TYPES_MAX &&
           counts->chars <= FILE_BYTES_MAX && counts->leap <= FILE_BYTES_MAX &&
           counts->utc <= TYPES_MAX && counts->standard <= TYPES_MAX;
}

static uint64_t block_size(const struct counts *counts, uint64_t time_size)
{
    return counts->times * (time_size + 1) + counts->types * UINT64_C(6) + counts->chars +
           counts->leap * (time_size + 4) + counts->standard + counts->utc;
}

static bool take_transitions(struct rules_zone *zone, struct tzif *tzif,
                             const struct counts *counts)
{
    int32_t offsets[TYPES_MAX] = {0};
    const uint8_t *types = tzif->at + counts->times * 8, *records = types + counts->times;
    struct tzif type = {records, tzif->end};
    for (uint32_t i = 0; i < counts->types; i++) {
        offsets[i] = (int32_t)take32(&type);
        type.at += 2;
        if (offsets[i] <= -POSIX_ZONE_OFFSET_MAX || offsets[i] >= POSIX_ZONE_OFFSET_MAX)
            return false;
    }
    zone->first = offsets[0];
    zone->count = counts->times;
    for (uint32_t i = 0; i < counts->times; i++) {
        zone->at_s[i] = take64(tzif);
        if (types[i] >= counts->types || (i > 0 && zone->at_s[i] <= zone->at_s[i - 1]))
            return false;
        zone->offset[i] = offsets[types[i]];
    }
    return true;
}

/* What follows the last transition: "\nTZ-string\n", the string perhaps empty. */
static bool take_footer(struct rules_zone *zone, struct tzif *tzif)
{
    size_t left = (size_t)(tzif->end - tzif->at);
    if (left < 2 || tzif->at[0] != '\n')
        return false;
    const uint8_t *text = tzif->at + 1, *end = memchr(text, '\n', left - 1);
    if (!end)
        return false;
    zone->ruled = end > text;
    return !zone->ruled ||
           posix_zone_parse(&zone->rule, (const char *)text, (size_t)(end - text)) == 0;
}

static int read_zone(struct rules_zone **opened, struct tzif *tzif)
{
    struct counts counts;
    if (!take_header(tzif, &counts) || block_size(&counts, 4) > (uint64_t)(tzif->end - tzif->at))
        return WEIR_ERR_SYNTAX;
    tzif->at += block_size(&counts, 4);
    if (!take_header(tzif, &counts) || counts.leap > 0 || counts.types == 0 ||
        block_size(&counts, 8) > (uint64_t)(tzif->end - tzif->at))
        return WEIR_ERR_SYNTAX;
    struct rules_zone *zone = calloc(1, sizeof(*zone));
    if (!zone)
        return WEIR_ERR_MEMORY;
    zone->at_s = calloc(counts.times + 1, sizeof(*zone->at_s));
    zone->offset = calloc(counts.times + 1, sizeof(*zone->offset));
    const uint8_t *block = tzif->at;
    int err = !zone->at_s || !zone->offset ? WEIR_ERR_MEMORY : 0;
    if (err == 0 && !take_transitions(zone, tzif, &counts))
        err = WEIR_ERR_SYNTAX;
    tzif->at = block + block_size(&counts, 8);
    if (err == 0 && !take_footer(zone, tzif))
        err = WEIR_ERR_SYNTAX;
    if (err < 0) {
        rules_zone_close(zone);
        return err;
    }
    *opened = zone;
    return 0;
}

int rules_zone_parse(struct rules_zone **zone, const uint8_t *data, size_t size,
                     struct weir_reason *reason)
{
    struct tzif tzif = {data, data + size};
    int err = read_zone(zone, &tzif);
    if (err == WEIR_ERR_SYNTAX)
        snprintf(reason->text, sizeof(reason->text),
                 "not a time zone file without leap seconds (TZif, RFC 8536)");
    else if (err < 0)
        snprintf(reason->text, sizeof(reason->text), "%s", weir_error_text(err));
    return err;
}

/* Names are paths below the folder of zones, and never lead out of it. */
static bool is_zone_name(struct weir_bytes name)
{
    if (name.size == 0 || name.size > RULES_ZONE_NAME_MAX)
        return false;
    for (size_t i = 0; i < name.size; i++) {
        char c = name.data[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        bool slash = c == '/' && i > 0 && i + 1 < name.size && name.data[i - 1] != '/';
        if (!letter && !slash && c != '+' && c != '-' && c != '_')
            return false;
    }
    return true;
}

int rules_zone_open(struct rules_zone **zone, struct weir_bytes name, struct weir_reason *reason)
{
    static const uint8_t utc[] = "TZif2...............\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
                                 "\0\0\0\0"
                                 "TZif2...............\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1"
                                 "\0\0\0\4"
                                 "\0\0\0\0\0\0UTC\0\nUTC0\n";
    char path[sizeof(RULES_ZONE_FOLDER) + RULES_ZONE_NAME_MAX + 1];
    *zone = NULL;
    if (!is_zone_name(name)) {
        snprintf(reason->text, sizeof(reason->text),
                 "a time zone is a name like `Europe/Zurich` or `UTC`");
        return WEIR_ERR_SYNTAX;
    }
    if (name.size == 3 && memcmp(name.data, "UTC", 3) == 0)
        return rules_zone_parse(zone, utc, sizeof(utc) - 1, reason);
    snprintf(path, sizeof(path), "%s/%.*s", RULES_ZONE_FOLDER, (int)name.size, name.data);
    uint8_t *data = malloc(FILE_BYTES_MAX);
    struct weir_reason unwanted;
    long size = data ? weir_file_read(path, data, FILE_BYTES_MAX, &unwanted) : WEIR_ERR_MEMORY;
    int err = size < 0 ? (int)size : 0;
    if (err == 0)
        err = rules_zone_parse(zone, data, (size_t)size, reason);
    else if (err == WEIR_ERR_NOT_FOUND)
        snprintf(reason->text, sizeof(reason->text), "there is no time zone `%.*s` in %s",
                 (int)name.size, name.data, RULES_ZONE_FOLDER);
    else
        snprintf(reason->text, sizeof(reason->text), "%s: %s", path, weir_error_text(err));
    free(data);
    return err;
}

void rules_zone_close(struct rules_zone *zone)
{
    if (!zone)
        return;
    free(zone->at_s);
    free(zone->offset);
    free(zone);
}
