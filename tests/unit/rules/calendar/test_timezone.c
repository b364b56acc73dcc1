/* SPDX-License-Identifier: Apache-2.0 */
/* Time zones beside glibc, which reads the same files in its own way: every zone, 20 years. And
 * calendars, where the answers are known. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <cmocka.h>

#include "core/bytes.h"
#include "rules/calendar/calendar.h"
#include "test.h"

#define FROM_S INT64_C(1420070400) /* 2015-01-01 */
#define TO_S INT64_C(2082758400)   /* 2036-01-01 */
#define DAY_S INT64_C(86400)

static struct rules_zone *open_zone(const char *name)
{
    struct rules_zone *zone;
    struct weir_reason reason = {{0}};
    int err = rules_zone_open(&zone, weir_bytes_of(name), &reason);
    if (err != 0)
        fail_msg("%s: %s", name, reason.text);
    return zone;
}

static int32_t glibc_offset(int64_t at_s)
{
    struct tm tm;
    time_t at = (time_t)at_s;
    localtime_r(&at, &tm);
    return (int32_t)tm.tm_gmtoff;
}

static void compare_at(const struct rules_zone *zone, const char *name, int64_t at_s)
{
    if (rules_zone_offset(zone, at_s) != glibc_offset(at_s))
        fail_msg("%s at %lld: %d, glibc says %d", name, (long long)at_s,
                 rules_zone_offset(zone, at_s), glibc_offset(at_s));
}

/* The moment shows the time that was asked for or a later one, and nothing shortly before did. */
static void compare_moment(const struct rules_zone *zone, const char *name,
                           const struct rules_civil *civil)
{
    static const int32_t before[] = {1, 1799, 1800, 3599, 3600, 7199};
    int64_t wanted = rules_civil_days(civil->year, civil->month, civil->day) * DAY_S +
                     civil->hour * INT64_C(3600) + civil->minute * INT64_C(60);
    int64_t at_s = rules_zone_moment(zone, civil);
    if (at_s + glibc_offset(at_s) < wanted)
        fail_msg("%s shows %lld too late", name, (long long)at_s);
    for (size_t i = 0; i < sizeof(before) / sizeof(before[0]); i++)
        if (at_s - before[i] + glibc_offset(at_s - before[i]) >= wanted)
            fail_msg("%s has shown it %d s before %lld", name, before[i], (long long)at_s);
}

static void compare_changes(const struct rules_zone *zone, const char *name)
{
    int32_t offset = glibc_offset(FROM_S);
    for (int64_t at_s = FROM_S; at_s < TO_S; at_s += DAY_S) {
        compare_at(zone, name, at_s);
        int32_t next = glibc_offset(at_s + DAY_S);
        int64_t low = at_s, high = at_s + DAY_S;
        while (next != offset && high - low > 1) {
            int64_t middle = low + (high - low) / 2;
            if (glibc_offset(middle) == offset)
                low = middle;
            else
                high = middle;
        }
        if (next != offset) {
            compare_at(zone, name, low);
            compare_at(zone, name, high);
            struct rules_civil civil;
            rules_zone_civil(zone, low, &civil);
            civil.hour += 1;
            civil.minute = 30;
            civil.second = 0;
            compare_moment(zone, name, &civil);
        }
        offset = next;
    }
}

static void compare_month_ends(const struct rules_zone *zone, const char *name)
{
    for (int64_t year = 2015; year < 2036; year++) {
        for (int32_t month = 1; month <= 12; month++) {
            struct rules_civil civil = {year, month, 1, 0, 0, 0};
            compare_moment(zone, name, &civil);
            civil.day = rules_month_length(year, month);
            civil.hour = 2;
            compare_moment(zone, name, &civil);
        }
    }
}

/* Walks the folder of zones; those of leap seconds and other trees of the same zones are left out.
 */
static unsigned compare_folder(const char *below)
{
    char path[512];
    unsigned zones = 0;
    snprintf(path, sizeof(path), "%s/%s", RULES_ZONE_FOLDER, below);
    DIR *folder = opendir(path);
    assert_non_null(folder);
    struct dirent *entry;
    while ((entry = readdir(folder)) != NULL) {
        char name[512], file[1024];
        struct stat status;
        if (strpbrk(entry->d_name, ".") != NULL || !strcmp(entry->d_name, "right") ||
            !strcmp(entry->d_name, "posix") || !strcmp(entry->d_name, "leapseconds") ||
            !strcmp(entry->d_name, "posixrules") || !strcmp(entry->d_name, "localtime"))
            continue;
        snprintf(name, sizeof(name), "%s%s%s", below, *below ? "/" : "", entry->d_name);
        snprintf(file, sizeof(file), "%s/%s", RULES_ZONE_FOLDER, name);
        assert_int_equal(stat(file, &status), 0);
        if (S_ISDIR(status.st_mode)) {
            zones += compare_folder(name);
            continue;
        }
        struct rules_zone *zone = open_zone(name);
        setenv("TZ", name, 1);
        tzset();
        compare_changes(zone, name);
        compare_month_ends(zone, name);
        rules_zone_close(zone);
        zones++;
    }
    closedir(folder);
    return zones;
}

TEST("every zone shows what glibc shows")
{
    assert_true(compare_folder("") > 400);
}

TEST("utc needs no file")
{
    struct rules_zone *zone = open_zone("UTC");
    struct rules_civil civil;
    assert_int_equal(rules_zone_offset(zone, FROM_S), 0);
    rules_zone_civil(zone, -1, &civil);
    assert_int_equal(civil.year, 1969);
    assert_int_equal(civil.month, 12);
    assert_int_equal(civil.day, 31);
    assert_int_equal(civil.second, 59);
    rules_zone_close(zone);
}

TEST("civil dates carry over")
{
    assert_int_equal(rules_civil_days(1970, 1, 1), 0);
    assert_int_equal(rules_civil_days(2024, 14, 1), rules_civil_days(2025, 2, 1));
    assert_int_equal(rules_civil_days(2024, 0, 31), rules_civil_days(2023, 12, 31));
    assert_int_equal(rules_month_length(2024, 2), 29);
    assert_int_equal(rules_month_length(2100, 2), 28);
    assert_int_equal(rules_month_length(2000, 2), 29);
    assert_int_equal(rules_weekday(0), 3);
    assert_int_equal(rules_weekday(-4), 6);
    for (int64_t days = -800000; days < 800000; days += 11) {
        struct rules_civil civil;
        rules_civil_of_days(days, &civil);
        assert_int_equal(rules_civil_days(civil.year, civil.month, civil.day), days);
    }
}

TEST("names that are none are refused")
{
    static const char *const bad[] = {
        "", "/etc/passwd", "../../etc/passwd", "Europe//Zurich", "UTC/", "Europe/Zürich", "a b",
        "."};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct rules_zone *zone;
        struct weir_reason reason = {{0}};
        struct weir_bytes name = {bad[i], strlen(bad[i])};
        assert_int_equal(rules_zone_open(&zone, name, &reason), WEIR_ERR_SYNTAX);
        assert_null(zone);
        assert_non_null(strstr(reason.text, "Europe/Zurich"));
    }
    struct rules_zone *zone;
    struct weir_reason reason = {{0}};
    assert_int_equal(rules_zone_open(&zone, (struct weir_bytes){"Mars/Olympus", 12}, &reason),
                     WEIR_ERR_NOT_FOUND);
    assert_non_null(strstr(reason.text, "`Mars/Olympus`"));
}

/* Every cut and every single changed byte is refused or read; nothing is read beyond the end. */
TEST("damaged files do no harm")
{
    uint8_t file[8192];
    FILE *in = fopen(RULES_ZONE_FOLDER "/Europe/Zurich", "rb");
    assert_non_null(in);
    size_t size = fread(file, 1, sizeof(file), in);
    fclose(in);
    assert_true(size > 100 && size < sizeof(file));
    for (size_t cut = 0; cut <= size; cut++) {
        struct weir_reason reason = {{0}};
        struct rules_zone *zone;
        uint8_t *copy = malloc(cut + 1); /* so that a sanitizer sees the end */
        assert_non_null(copy);
        memcpy(copy, file, cut);
        int err = rules_zone_parse(&zone, copy, cut, &reason);
        assert_int_equal(err, cut == size ? 0 : WEIR_ERR_SYNTAX);
        if (err == 0)
            rules_zone_close(zone);
        free(copy);
    }
    for (size_t i = 0; i < size; i++) {
        for (int value = 0; value < 256; value += 51) {
            struct weir_reason reason = {{0}};
            struct rules_zone *zone;
            uint8_t kept = file[i];
            file[i] = (uint8_t)value;
            if (rules_zone_parse(&zone, file, size, &reason) == 0) {
                struct rules_civil civil = {2026, 3, 29, 2, 30, 0};
                (void)rules_zone_moment(zone, &civil);
                rules_zone_close(zone);
            }
            file[i] = kept;
        }
    }
}

/* --- Calendars -------------------------------------------------------------------------------- */

static void expect_begin(const struct rules_zone *zone, int64_t at_s, int64_t year, int32_t month,
                         int32_t day, int32_t hour)
{
    struct rules_civil civil;
    rules_zone_civil(zone, at_s, &civil);
    if (civil.year != year || civil.month != month || civil.day != day || civil.hour != hour ||
        civil.minute != 0 || civil.second != 0)
        fail_msg("begins %lld-%d-%d %d:%d", (long long)civil.year, civil.month, civil.day,
                 civil.hour, civil.minute);
}

TEST("months begin on their day or their last")
{
    struct rules_zone *zone = open_zone("Europe/Zurich");
    struct rules_calendar calendar = {.unit = RULES_MONTHLY, .day = 31, .hour = 6};
    int64_t bounds[16];
    struct rules_civil from = {2024, 1, 31, 6, 0, 0};
    uint32_t count =
        rules_calendar_bounds(&calendar, zone, rules_zone_moment(zone, &from), TO_S, bounds, 16);
    static const int32_t days[] = {31, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    assert_int_equal(count, 16);
    expect_begin(zone, bounds[0], 2023, 12, 31, 6);
    for (int32_t i = 1; i <= 12; i++)
        expect_begin(zone, bounds[i], 2024, i, days[i], 6);
    rules_zone_close(zone);
}

TEST("days have 23 24 or 25 hours")
{
    struct rules_zone *zone = open_zone("Europe/Zurich");
    struct rules_calendar calendar = {.unit = RULES_DAILY};
    int64_t bounds[400];
    struct rules_civil from = {2026, 1, 1, 12, 0, 0};
    rules_calendar_bounds(&calendar, zone, rules_zone_moment(zone, &from), TO_S, bounds, 400);
    unsigned short_days = 0, long_days = 0;
    for (int i = 1; i <= 365; i++) {
        int64_t length = bounds[i + 1] - bounds[i];
        short_days += length == 23 * 3600;
        long_days += length == 25 * 3600;
        assert_true(length == DAY_S || length == 23 * 3600 || length == 25 * 3600);
        struct rules_civil civil;
        rules_zone_civil(zone, bounds[i], &civil);
        assert_int_equal(civil.hour, 0);
    }
    assert_int_equal(short_days, 1);
    assert_int_equal(long_days, 1);
    rules_zone_close(zone);
}

TEST("a skipped day has no period")
{
    struct rules_zone *zone = open_zone("Pacific/Apia"); /* had no 30 December 2011 */
    struct rules_calendar calendar = {.unit = RULES_DAILY};
    struct rules_civil from = {2011, 12, 29, 1, 0, 0};
    int64_t bounds[8];
    rules_calendar_bounds(&calendar, zone, rules_zone_moment(zone, &from), TO_S, bounds, 8);
    expect_begin(zone, bounds[1], 2011, 12, 29, 0);
    expect_begin(zone, bounds[2], 2011, 12, 31, 0);
    assert_int_equal(bounds[2] - bounds[1], DAY_S);
    from.day = 31;
    rules_calendar_bounds(&calendar, zone, rules_zone_moment(zone, &from), TO_S, bounds, 8);
    expect_begin(zone, bounds[0], 2011, 12, 29, 0);
    expect_begin(zone, bounds[1], 2011, 12, 31, 0);
    rules_zone_close(zone);
}

TEST("weeks and years begin at their anchors")
{
    struct rules_zone *zone = open_zone("America/New_York");
    struct rules_calendar week = {.unit = RULES_WEEKLY, .weekday = 6, .hour = 18};
    struct rules_calendar year = {.unit = RULES_YEARLY, .month = 2, .day = 29};
    int64_t bounds[8];
    struct rules_civil from = {2026, 11, 20, 12, 0, 0}; /* a Friday */
    rules_calendar_bounds(&week, zone, rules_zone_moment(zone, &from), TO_S, bounds, 8);
    expect_begin(zone, bounds[0], 2026, 11, 8, 18);
    expect_begin(zone, bounds[1], 2026, 11, 15, 18);
    expect_begin(zone, bounds[2], 2026, 11, 22, 18);
    rules_calendar_bounds(&year, zone, rules_zone_moment(zone, &from), TO_S, bounds, 8);
    expect_begin(zone, bounds[1], 2026, 2, 28, 0);
    expect_begin(zone, bounds[2], 2027, 2, 28, 0);
    expect_begin(zone, bounds[3], 2028, 2, 29, 0);
    rules_zone_close(zone);
}

/* At any moment of 20 years: the period holds the moment, whatever unit and anchor. */
TEST("periods follow one another without a gap")
{
    static const char *const names[] = {"UTC",
                                        "Europe/London",
                                        "Australia/Lord_Howe",
                                        "Asia/Kathmandu",
                                        "America/St_Johns",
                                        "Africa/Casablanca"};
    for (size_t z = 0; z < sizeof(names) / sizeof(names[0]); z++) {
        struct rules_zone *zone = open_zone(names[z]);
        for (int unit = RULES_DAILY; unit <= RULES_YEARLY; unit++) {
            struct rules_calendar calendar = {(uint8_t)unit, 7, 30, 2, 2, 30};
            for (int64_t at_s = FROM_S; at_s < TO_S; at_s += 9 * DAY_S + 12345) {
                int64_t bounds[4];
                assert_int_equal(
                    rules_calendar_bounds(&calendar, zone, at_s, at_s + 800 * DAY_S, bounds, 4), 4);
                assert_true(bounds[0] < bounds[1] && bounds[1] <= at_s && at_s < bounds[2] &&
                            bounds[2] < bounds[3]);
            }
        }
        rules_zone_close(zone);
    }
}

RUN_TESTS()
