/* SPDX-License-Identifier: Apache-2.0 */
/* See access_log.h. */
#include "wire/log/access_log.h"

#include <stdbool.h>
#include <string.h>

#include "core/text/hex.h"

#define NS_PER_S UINT64_C(1000000000)
#define SECONDS_PER_DAY 86400
#define TIME_SIZE 26 /* 07/Mar/2004:16:05:49 -0800 */

struct cursor {
    char *at, *end;
};

static bool byte_take(struct cursor *cursor, char wanted)
{
    if (cursor->at == cursor->end || *cursor->at != wanted)
        return false;
    cursor->at++;
    return true;
}

/* Takes a field that ends with a space, which it takes too. */
static bool word_take(struct cursor *cursor, struct weir_bytes *word)
{
    char *space = memchr(cursor->at, ' ', (size_t)(cursor->end - cursor->at));
    if (!space || space == cursor->at)
        return false;
    *word = (struct weir_bytes){cursor->at, (size_t)(space - cursor->at)};
    cursor->at = space + 1;
    return true;
}

/* Reads what follows a backslash at `at`. Returns the bytes taken, 0 when it is no escape. */
static size_t escape_read(const char *at, const char *end, char *out)
{
    static const char letters[] = "\"\\bfnrtv", values[] = "\"\\\b\f\n\r\t\v";
    if (at == end)
        return 0;
    const char *letter = memchr(letters, *at, sizeof letters - 1);
    if (letter) {
        *out = values[letter - letters];
        return 1;
    }
    if (*at == 'x' && end - at >= 3 && weir_hex_value(at[1]) >= 0 && weir_hex_value(at[2]) >= 0) {
        *out = (char)(weir_hex_value(at[1]) << 4 | weir_hex_value(at[2]));
        return 3;
    }
    return 0;
}

/* Takes a quoted field and unescapes it. */
static bool quoted_take(struct cursor *cursor, struct weir_bytes *field)
{
    if (!byte_take(cursor, '"'))
        return false;
    char *at = cursor->at, *out = at, *start = at;
    while (at < cursor->end && *at != '"') {
        char c = *at++;
        if (c == '\\')
            at += escape_read(at, cursor->end, &c);
        *out++ = c;
    }
    if (at == cursor->end)
        return false;
    *field = (struct weir_bytes){start, (size_t)(out - start)};
    cursor->at = at + 1;
    return true;
}

/* A number of exactly `digits` digits; -1 when it is none. */
static int digits_read(const char *at, int digits)
{
    int value = 0;
    for (int i = 0; i < digits; i++) {
        if (at[i] < '0' || at[i] > '9')
            return -1;
        value = value * 10 + (at[i] - '0');
    }
    return value;
}

static int month_read(const char *at)
{
    static const char names[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    int month = 0;
    while (month < 12 && memcmp(names + (size_t)month * 3, at, 3) != 0)
        month++;
    return month < 12 ? month + 1 : -1;
}

/* Days from 1970-01-01, Gregorian. Years begin in March, so that the leap day is the last (Howard
 * Hinnant, "chrono-compatible low-level date algorithms", days_from_civil). */
static int64_t days_from_epoch(int year, int month, int day)
{
    int64_t y = year - (month <= 2);
    int64_t era = y / 400, of_era = y % 400;
    int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    int64_t day_of_era = of_era * 365 + of_era / 4 - of_era / 100 + day_of_year;
    return era * 146097 + day_of_era - 719468;
}

static bool date_is_valid(int year, int month, int day)
{
    static const uint8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    if (year < 0 || month < 1 || day < 1)
        return false;
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return day <= days[month - 1] + (month == 2 && leap);
}

/* dd/Mon/yyyy:HH:MM:SS +hhmm. The second 60 is a leap second and counts as the next one. */
static bool time_read(const char *at, uint64_t *t_ns)
{
    if (at[2] != '/' || at[6] != '/' || at[11] != ':' || at[14] != ':' || at[17] != ':' ||
        at[20] != ' ' || (at[21] != '+' && at[21] != '-'))
        return false;
    int day = digits_read(at, 2), month = month_read(at + 3), year = digits_read(at + 7, 4);
    int hour = digits_read(at + 12, 2), minute = digits_read(at + 15, 2);
    int second = digits_read(at + 18, 2);
    int zone_hour = digits_read(at + 22, 2), zone_minute = digits_read(at + 24, 2);
    if (!date_is_valid(year, month, day) || hour < 0 || hour > 23 || minute < 0 || minute > 59 ||
        second < 0 || second > 60 || zone_hour < 0 || zone_hour > 23 || zone_minute < 0 ||
        zone_minute > 59)
        return false;
    int64_t zone = (zone_hour * 60 + zone_minute) * 60;
    int64_t t = days_from_epoch(year, month, day) * SECONDS_PER_DAY + hour * 3600 + minute * 60 +
                second - (at[21] == '-' ? -zone : zone);
    if (t < 0 || (uint64_t)t >= (UINT64_C(1) << 62) / NS_PER_S)
        return false; /* limit.h: times are below 2^62 ns, in the year 2116 */
    *t_ns = (uint64_t)t * NS_PER_S;
    return true;
}

static bool time_take(struct cursor *cursor, uint64_t *t_ns)
{
    if (!byte_take(cursor, '[') || cursor->end - cursor->at < TIME_SIZE ||
        !time_read(cursor->at, t_ns))
        return false;
    cursor->at += TIME_SIZE;
    return byte_take(cursor, ']') && byte_take(cursor, ' ');
}

/* METHOD SP target [SP HTTP/x]. A target may hold spaces, as servers log what they got. */
static void request_split(struct weir_access_line *line, struct weir_bytes request)
{
    const char *space = memchr(request.data, ' ', request.size);
    line->method = line->target = (struct weir_bytes){0};
    if (!space || space == request.data)
        return;
    const char *target = space + 1, *end = request.data + request.size;
    const char *last = memrchr(target, ' ', (size_t)(end - target));
    if (last && end - last > 5 && memcmp(last + 1, "HTTP/", 5) == 0)
        end = last;
    if (end > target) {
        line->method = (struct weir_bytes){request.data, (size_t)(space - request.data)};
        line->target = (struct weir_bytes){target, (size_t)(end - target)};
    }
}

/* Three digits and a space. */
static bool status_take(struct cursor *cursor, uint32_t *status)
{
    int value = cursor->end - cursor->at > 3 ? digits_read(cursor->at, 3) : -1;
    if (value < 0)
        return false;
    *status = (uint32_t)value;
    cursor->at += 3;
    return byte_take(cursor, ' ');
}

/* A number up to 2^64 - 1, or "-"; then a space or the end. */
static bool size_take(struct cursor *cursor, uint64_t *bytes)
{
    char *start = cursor->at;
    *bytes = 0;
    if (!byte_take(cursor, '-')) {
        while (cursor->at < cursor->end && *cursor->at >= '0' && *cursor->at <= '9') {
            if (__builtin_mul_overflow(*bytes, 10, bytes) ||
                __builtin_add_overflow(*bytes, (uint64_t)(*cursor->at - '0'), bytes))
                return false;
            cursor->at++;
        }
    }
    return cursor->at > start && (cursor->at == cursor->end || byte_take(cursor, ' '));
}

static struct weir_bytes absent_if_dash(struct weir_bytes field)
{
    return field.size == 1 && field.data[0] == '-' ? (struct weir_bytes){0} : field;
}

int weir_access_line_parse(struct weir_access_line *line, char *text, size_t size)
{
    struct cursor cursor = {text, text + size};
    struct weir_bytes ident, request;

    while (cursor.end > text && memchr(" \t\r\n", cursor.end[-1], 4))
        cursor.end--;
    if (!word_take(&cursor, &line->host) || !word_take(&cursor, &ident) ||
        !word_take(&cursor, &line->user) || !time_take(&cursor, &line->t_ns) ||
        !quoted_take(&cursor, &request) || !byte_take(&cursor, ' ') ||
        !status_take(&cursor, &line->status) || !size_take(&cursor, &line->bytes))
        return WEIR_ERR_SYNTAX;
    line->user = absent_if_dash(line->user);
    line->referer = line->agent = (struct weir_bytes){0};
    line->combined = false;
    request_split(line, request);
    if (cursor.at == cursor.end)
        return 0; /* common */
    if (!quoted_take(&cursor, &line->referer) || !byte_take(&cursor, ' ') ||
        !quoted_take(&cursor, &line->agent) || (cursor.at < cursor.end && !byte_take(&cursor, ' ')))
        return WEIR_ERR_SYNTAX;
    line->referer = absent_if_dash(line->referer);
    line->agent = absent_if_dash(line->agent);
    line->combined = true;
    return 0;
}
