/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules: what a rules file may say of them, and when they hold. */
#include "core/bytes.h"
#include "rules/calendar/schedule.h"
#include "rules_test.h"
#include "test.h"

#define S UINT64_C(1000000000)
#define MINUTE 60
#define HOUR 3600
#define DAY 86400

static struct weir_rules *load_when(const char *when, const char *file_zone)
{
    char text[512];
    snprintf(text, sizeof(text),
             "version: 1\n%s\nlimits:\n- {name: l, key: [], rate: 1/s, when: %s}\n", file_zone,
             when);
    return test_load(text);
}

static bool in_force(const struct weir_rules *rules, int64_t at_s)
{
    struct weir_moment moment;
    weir_rules_moment(rules, (uint64_t)at_s * S, &moment);
    assert_true(moment.from_ns <= (uint64_t)at_s * S && (uint64_t)at_s * S < moment.until_ns);
    return moment.resting == 0;
}

/* When it begins or ends next. */
static int64_t next_change(const struct weir_rules *rules, int64_t at_s)
{
    struct weir_moment moment;
    weir_rules_moment(rules, (uint64_t)at_s * S, &moment);
    return (int64_t)(moment.until_ns / S);
}

#define MONDAY INT64_C(1699833600) /* 2023-11-13 00:00 UTC */

TEST("working hours hold on working days")
{
    struct weir_rules *rules = load_when("'Mon-Fri 09:00-18:00'", "");
    for (int day = 0; day < 7; day++) {
        int64_t midnight = MONDAY + day * DAY;
        assert_int_equal(in_force(rules, midnight + 9 * HOUR), day < 5);
        assert_int_equal(in_force(rules, midnight + 18 * HOUR - 1), day < 5);
        assert_false(in_force(rules, midnight + 9 * HOUR - 1));
        assert_false(in_force(rules, midnight + 18 * HOUR));
    }
    weir_rules_unref(rules);
}

TEST("hours over midnight belong to the day on which they begin")
{
    struct weir_rules *rules = load_when("'Fri 22:00-06:00'", "");
    int64_t friday = MONDAY + 4 * DAY;
    assert_false(in_force(rules, friday + 5 * HOUR));
    assert_false(in_force(rules, friday + 22 * HOUR - 1));
    assert_true(in_force(rules, friday + 22 * HOUR));
    assert_int_equal(next_change(rules, friday + 22 * HOUR), friday + DAY + 6 * HOUR);
    assert_false(in_force(rules, friday + DAY + 22 * HOUR));
    weir_rules_unref(rules);
}

TEST("days may be listed wrapped and written out")
{
    static const char *const texts[] = {"'Sat-Mon,wed'", "[sunday, 'Mon,Wed', saturday]"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct weir_rules *rules = load_when(texts[i], "");
        static const bool expected[] = {true, false, true, false, false, true, true};
        for (int day = 0; day < 7; day++) {
            assert_int_equal(in_force(rules, MONDAY + day * DAY), expected[day]);
            assert_int_equal(in_force(rules, MONDAY + day * DAY + DAY - 1), expected[day]);
        }
        assert_int_equal(next_change(rules, MONDAY + 5 * DAY), MONDAY + 8 * DAY); /* in one piece */
        weir_rules_unref(rules);
    }
}

TEST("several hours are several pieces")
{
    struct weir_rules *rules = load_when("'09:00-12:00,13:00-18:00'", "");
    assert_int_equal(next_change(rules, MONDAY), MONDAY + 9 * HOUR);
    assert_int_equal(next_change(rules, MONDAY + 9 * HOUR), MONDAY + 12 * HOUR);
    assert_int_equal(next_change(rules, MONDAY + 12 * HOUR), MONDAY + 13 * HOUR);
    assert_int_equal(next_change(rules, MONDAY + 13 * HOUR), MONDAY + 18 * HOUR);
    weir_rules_unref(rules);
}

TEST("a zone is its own or that of the file")
{
    static const struct {
        const char *when, *file;
        int64_t begins;
    } cases[] = {{"'09:00-10:00 Asia/Tokyo'", "timezone: Europe/Zurich", 0},
                 {"'09:00-10:00'", "timezone: Asia/Tokyo", 0},
                 {"'09:00-10:00'", "", 9 * HOUR}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct weir_rules *rules = load_when(cases[i].when, cases[i].file);
        assert_true(in_force(rules, MONDAY + cases[i].begins));
        assert_false(in_force(rules, MONDAY + cases[i].begins - 1));
        weir_rules_unref(rules);
    }
}

TEST("quotas count in the zone of the file")
{
    struct weir_rules *rules = test_load("timezone: Asia/Tokyo\n"
                                         "limits:\n- {name: q, key: [], quota: 1/day}\n");
    struct weir_rule_info info;
    weir_rules_info(rules, 0, &info);
    assert_int_equal(info.limit->spec.bounds[100] / S % DAY, 15 * HOUR);
    weir_rules_unref(rules);
}

TEST("where clocks change the wall counts")
{
    /* Zurich: 2024-03-31 02:00 -> 03:00 at 01:00 UTC; 2024-10-27 03:00 -> 02:00 at 01:00 UTC. */
    const int64_t spring = 1711846800, autumn = 1729990800;
    struct weir_rules *rules = load_when("'02:15-02:45 Europe/Zurich'", "");
    assert_false(in_force(rules, spring)); /* skipped */
    assert_int_equal(next_change(rules, spring - DAY + HOUR), spring + DAY - 45 * MINUTE);
    assert_int_equal(next_change(rules, autumn - HOUR), autumn - 45 * MINUTE);
    assert_int_equal(next_change(rules, autumn - 45 * MINUTE), autumn - 15 * MINUTE);
    assert_int_equal(next_change(rules, autumn - 15 * MINUTE), autumn + 15 * MINUTE); /* again */
    assert_int_equal(next_change(rules, autumn + 15 * MINUTE), autumn + 45 * MINUTE);
    weir_rules_unref(rules);
    rules = load_when("'02:30-04:00 Europe/Zurich'", "");
    assert_true(in_force(rules, spring)); /* it is three */
    assert_false(in_force(rules, spring - 1));
    assert_true(in_force(rules, autumn - 1));
    assert_false(in_force(rules, autumn)); /* two o'clock once more */
    assert_true(in_force(rules, autumn + 30 * MINUTE));
    weir_rules_unref(rules);
}

static bool wall_shows(const struct rules_zone *zone, int64_t at_s, int from, int to)
{
    struct rules_civil civil;
    rules_zone_civil(zone, at_s, &civil);
    int minute = civil.hour * 60 + civil.minute;
    return from < to ? minute >= from && minute < to : minute >= from || minute < to;
}

TEST("random hours hold while the wall shows them")
{
    static const char *const zones[] = {
        "Europe/Zurich",    "America/New_York",  "Asia/Kolkata",
        "Pacific/Apia",     "Africa/Casablanca", "Australia/Lord_Howe",
        "America/St_Johns", "Asia/Gaza",         "UTC"};
    uint32_t random = 1;
    for (size_t z = 0; z < sizeof(zones) / sizeof(zones[0]); z++) {
        struct weir_reason reason;
        struct rules_zone *zone;
        struct rules_schedule schedule;
        random = random * 1664525 + 1013904223;
        struct rules_hours hours = {0x7F, (uint16_t)((random >> 8) % 1440),
                                    (uint16_t)((random >> 20) % 1440)};
        assert_int_equal(rules_zone_open(&zone, weir_bytes_of(zones[z]), &reason), 0);
        assert_int_equal(rules_schedule_make(&schedule, &hours, 1, zone), 0);
        for (int i = 0; i < 20000; i++) {
            random = random * 1664525 + 1013904223;
            int64_t at_s = 631200000 + (int64_t)(random >> 1) % 2100000000;
            uint64_t from_ns, until_ns;
            assert_int_equal(rules_schedule_at(&schedule, (uint64_t)at_s * S, &from_ns, &until_ns),
                             wall_shows(zone, at_s, hours.from, hours.to));
            if (from_ns > 0 && until_ns < UINT64_MAX) {
                int64_t from_s = (int64_t)(from_ns / S), until_s = (int64_t)(until_ns / S);
                assert_true(wall_shows(zone, from_s, hours.from, hours.to) !=
                            wall_shows(zone, from_s - 1, hours.from, hours.to));
                assert_true(wall_shows(zone, until_s, hours.from, hours.to) !=
                            wall_shows(zone, until_s - 1, hours.from, hours.to));
            }
        }
        free(schedule.changes);
        rules_zone_close(zone);
    }
}

TEST("a limit at rest makes no check and removes no other")
{
    struct weir_rules *rules = test_load("limits:\n"
                                         "- {name: day, key: [], rate: 1/s, when: '09:00-18:00'}\n"
                                         "- {name: same, key: [], rate: 2/s, when: '09:00-18:00'}\n"
                                         "- {name: night, key: [], rate: 3/s, unless: day}\n");
    struct weir_explanation explanations[3];
    char text[WEIR_EXPLANATION_TEXT_MAX];
    assert_true(weir_rules_timed(rules));
    for (int hour = 8; hour < 10; hour++) {
        struct weir_moment moment;
        struct test_request *test = ASK_EMPTY(rules);
        weir_rules_moment(rules, (uint64_t)(MONDAY + hour * HOUR) * S, &moment);
        test->query.resting = moment.resting;
        test->count = weir_rules_checks(&test->query, test->checks);
        test_expect(test, hour == 8 ? "night{}" : "day{} same{}");
        assert_int_equal(weir_rules_explain(&test->query, test->checks, explanations), test->count);
        weir_explanation_text(rules, &explanations[0], text);
        assert_string_equal(text, hour == 8 ? "not in force now, but 09:00-18:00" : "applies");
    }
    struct weir_rule_info info;
    weir_rules_info(rules, 1, &info);
    assert_string_equal(info.when, "09:00-18:00");
    weir_rules_info(rules, 2, &info);
    assert_null(info.when);
    weir_rules_unref(rules);
}

#define ALLOWED                                                                                    \
    " is not a schedule; allowed are `Mon-Fri 09:00-18:00 Europe/Zurich`, `Sat,Sun`, "             \
    "`22:00-06:00`\n"

TEST("what is no schedule is refused")
{
    static const char *const cases[][2] = {
        {"''", "2:39: ``" ALLOWED},
        {"always", "2:39: `always`" ALLOWED},
        {"Mon-", "2:39: `Mon-`" ALLOWED},
        {"Mon--Fri", "2:39: `Mon--Fri`" ALLOWED},
        {"'Mon,'", "2:39: `Mon,`" ALLOWED},
        {"Mo 09:00-10:00", "2:39: `Mo 09:00-10:00`" ALLOWED},
        {"09:00", "2:39: `09:00`" ALLOWED},
        {"09:00-09:00", "2:39: `09:00-09:00`" ALLOWED},
        {"9:00-10:00", "2:39: `9:00-10:00`" ALLOWED},
        {"09:00-24:01", "2:39: `09:00-24:01`" ALLOWED},
        {"24:00-09:00", "2:39: `24:00-09:00`" ALLOWED},
        {"09:60-10:00", "2:39: `09:60-10:00`" ALLOWED},
        {"09:00-10:00 UTC x", "2:39: `09:00-10:00 UTC x`" ALLOWED},
        {"Europe/Zurich", "2:39: `Europe/Zurich`" ALLOWED},
        {"Mon 09:00-10:00 Nowhere",
         "2:39: there is no time zone `Nowhere` in /usr/share/zoneinfo\n"},
        {"00:00-24:00", "2:39: `when` covers all times; remove it\n"},
        {"[Mon-Fri, Sat-Sun]", "2:39: `when` covers all times; remove it\n"},
        {"[]", "2:39: `when` must be a schedule or a list: `Mon-Fri 09:00-18:00 Europe/Zurich`, "
               "`Sat,Sun`, `22:00-06:00`\n"},
        {"[[Mon]]", "2:40: `when` must be a text, not a list\n"},
        {"'00:00-01:00,02:00-03:00,04:00-05:00,06:00-07:00,08:00-09:00,10:00-11:00,12:00-13:00,"
         "14:00-15:00,16:00-17:00'",
         "2:39: `00:00-01:00,02:00-03:00,04:00-05:00,06:00-07:00,08:00-09:00,...` has more than 8 "
         "ranges of hours\n"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[512];
        snprintf(text, sizeof(text), "limits:\n- {name: l, key: [], rate: 1/s, when: %s}\n",
                 cases[i][0]);
        test_refused(text, cases[i][1]);
    }
    test_refused("timezone: Nowhere\nlimits:\n- {name: a, key: [], quota: 1/day}\n",
                 "1:11: there is no time zone `Nowhere` in /usr/share/zoneinfo\n");
}

TEST("a file has 64 different schedules at most")
{
    char text[16384] = "limits:\n";
    for (int i = 0; i < 65; i++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof(text) - used,
                 "- {name: l%d, key: [header.a%d], rate: 1/s, when: '%02d:%02d-23:00'}\n", i, i,
                 i / 60, i % 60);
    }
    test_refused(text, "66:51: more than 64 different schedules in this file\n");
}

RUN_TESTS()
