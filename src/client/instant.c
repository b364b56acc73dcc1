/* SPDX-License-Identifier: Apache-2.0 */
/* see instant.h */
#include "client/instant.h"

#include <string.h>
#include <strings.h>
#include <time.h>

#define S_NS UINT64_C(1000000000)

struct text {
    const char *at, *end;
};

static bool take_char(struct text *text, char wanted)
{
    if (text->at == text->end || *text->at != wanted)
        return false;
    text->at++;
    return true;
}

/* Exactly `digits` digits. */
static bool take_digits(struct text *text, int digits, int *value)
{
    *value = 0;
    for (int i = 0; i < digits; i++, text->at++) {
        if (text->at == text->end || *text->at < '0' || *text->at > '9')
            return false;
        *value = *value * 10 + (*text->at - '0');
    }
    return true;
}

static bool take_name(struct text *text, const char *const *names, int count, int *index)
{
    for (int i = 0; i < count; i++) {
        size_t size = strlen(names[i]);
        if ((size_t)(text->end - text->at) >= size && !strncasecmp(text->at, names[i], size)) {
            text->at += size;
            *index = i;
            return true;
        }
    }
    return false;
}

static const char *const month_names[12] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                            "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
/* Long names first: "Sun" begins "Sunday". */
static const char *const day_names[14] = {"Sunday", "Monday",   "Tuesday", "Wednesday", "Thursday",
                                          "Friday", "Saturday", "Sun",     "Mon",       "Tue",
                                          "Wed",    "Thu",      "Fri",     "Sat"};

struct civil {
    int year, month, day, hour, minute, second; /* month: 1..12 */
};

static bool take_clock(struct text *text, struct civil *civil)
{
    return take_digits(text, 2, &civil->hour) && take_char(text, ':') &&
           take_digits(text, 2, &civil->minute) && take_char(text, ':') &&
           take_digits(text, 2, &civil->second);
}

/* For years from 1970; false: there is no such date or time. */
static bool civil_seconds(const struct civil *civil, int64_t *seconds)
{
    struct tm date = {
        .tm_year = civil->year - 1900, .tm_mon = civil->month - 1, .tm_mday = civil->day};

    if (civil->year < 1970 || civil->year > 9999 || civil->month < 1 || civil->month > 12 ||
        civil->hour > 23 || civil->minute > 59 || civil->second > 60)
        return false;
    *seconds = timegm(&date) + civil->hour * 3600 + civil->minute * 60 + civil->second;
    return date.tm_mday == civil->day; /* else it was carried over to another month */
}

/* The year with these last two digits that is at most 50 years ahead (RFC 9110 5.6.7). */
static int full_year(int two_digits, int64_t now_s)
{
    int now = 1970 + (int)(now_s / 31556952);
    int year = now - now % 100 + two_digits;

    if (year > now + 50)
        return year - 100;
    return year <= now - 50 ? year + 100 : year;
}

/* "Nov  6 08:49:37 1994", behind the day of asctime. */
static bool take_asctime(struct text *text, struct civil *civil)
{
    bool good = take_name(text, month_names, 12, &civil->month) && take_char(text, ' ');

    civil->month++;
    if (good && take_char(text, ' '))
        good = take_digits(text, 1, &civil->day);
    else
        good = good && take_digits(text, 2, &civil->day);
    return good && take_char(text, ' ') && take_clock(text, civil) && take_char(text, ' ') &&
           take_digits(text, 4, &civil->year);
}

/* "06 Nov 1994 08:49:37 GMT", or with '-' between its parts and a short year. */
static bool take_fixdate(struct text *text, struct civil *civil, int64_t now_s)
{
    if (!take_char(text, ' ') || !take_digits(text, 2, &civil->day))
        return false;
    char between = take_char(text, '-') ? '-' : ' ';
    if ((between == ' ' && !take_char(text, ' ')) ||
        !take_name(text, month_names, 12, &civil->month) || !take_char(text, between))
        return false;
    civil->month++;
    bool short_year = text->end - text->at > 2 && text->at[2] == ' ';
    if (!take_digits(text, short_year ? 2 : 4, &civil->year))
        return false;
    if (short_year)
        civil->year = full_year(civil->year, now_s);
    static const char *const zones[2] = {" GMT", " UTC"};
    int zone;
    return take_char(text, ' ') && take_clock(text, civil) && take_name(text, zones, 2, &zone);
}

bool weir_instant_http_date(struct weir_bytes bytes, int64_t now_s, int64_t *seconds)
{
    struct text text = {bytes.data, bytes.data + bytes.size};
    struct civil civil = {0};
    int day;

    if (bytes.size == 0 || !take_name(&text, day_names, 14, &day))
        return false;
    bool good = take_char(&text, ',') ? take_fixdate(&text, &civil, now_s)
                                      : take_char(&text, ' ') && take_asctime(&text, &civil);
    return good && text.at == text.end && civil_seconds(&civil, seconds);
}

bool weir_instant_rfc3339(struct weir_bytes bytes, int64_t *seconds)
{
    struct text text = {bytes.data, bytes.data + bytes.size};
    struct civil civil = {0};
    int hours = 0, minutes = 0, sign = 0;

    if (bytes.size == 0 || !take_digits(&text, 4, &civil.year) || !take_char(&text, '-') ||
        !take_digits(&text, 2, &civil.month) || !take_char(&text, '-') ||
        !take_digits(&text, 2, &civil.day) ||
        !(take_char(&text, 'T') || take_char(&text, 't') || take_char(&text, ' ')) ||
        !take_clock(&text, &civil))
        return false;
    if (take_char(&text, '.'))
        while (text.at < text.end && *text.at >= '0' && *text.at <= '9')
            text.at++;
    if (!take_char(&text, 'Z') && !take_char(&text, 'z')) {
        sign = take_char(&text, '+') ? 1 : take_char(&text, '-') ? -1 : 0;
        if (sign == 0 || !take_digits(&text, 2, &hours) || !take_char(&text, ':') ||
            !take_digits(&text, 2, &minutes) || hours > 23 || minutes > 59)
            return false;
    }
    if (text.at != text.end || !civil_seconds(&civil, seconds))
        return false;
    *seconds -= sign * (hours * 3600 + minutes * 60);
    return true;
}

static bool take_number(struct text *text, uint64_t *whole, uint32_t *billionths)
{
    const char *start = text->at;
    uint32_t place = 100000000;

    *whole = *billionths = 0;
    for (; text->at < text->end && *text->at >= '0' && *text->at <= '9'; text->at++) {
        if (*whole > UINT64_C(99999999999999999))
            return false;
        *whole = *whole * 10 + (uint64_t)(*text->at - '0');
    }
    if (text->at == start)
        return false;
    if (!take_char(text, '.'))
        return true;
    start = text->at;
    for (; text->at < text->end && *text->at >= '0' && *text->at <= '9'; text->at++) {
        *billionths += (uint32_t)(*text->at - '0') * place;
        place /= 10;
    }
    return text->at > start;
}

bool weir_instant_number(struct weir_bytes bytes, uint64_t *whole, uint32_t *billionths)
{
    struct text text = {bytes.data, bytes.data + bytes.size};

    return bytes.size > 0 && take_number(&text, whole, billionths) && text.at == text.end;
}

bool weir_instant_duration(struct weir_bytes bytes, uint64_t *duration_ns)
{
    static const char *const units[] = {"ms", "us", "ns", "h", "m", "s", "d"};
    static const uint64_t sizes[] = {1000000, 1000, 1, 3600 * S_NS, 60 * S_NS, S_NS, 86400 * S_NS};
    struct text text = {bytes.data, bytes.data + bytes.size};
    uint64_t sum = 0;

    if (bytes.size == 0)
        return false;
    while (text.at < text.end) {
        uint64_t whole;
        uint32_t part;
        int unit;
        if (!take_number(&text, &whole, &part) || !take_name(&text, units, 7, &unit) ||
            whole > WEIR_INSTANT_HORIZON_NS / sizes[unit])
            return false;
        sum += whole * sizes[unit] + (uint64_t)((double)part * (double)sizes[unit] / 1e9);
        if (sum > WEIR_INSTANT_HORIZON_NS)
            return false;
    }
    *duration_ns = sum;
    return true;
}

/* One number or date. Longer waits than the horizon are the horizon. */
static bool take_wait(struct weir_bytes text, const int64_t *server_s, int64_t now_s,
                      uint64_t *wait_ns)
{
    uint64_t whole;
    uint32_t part;
    int64_t date;
    size_t digits = 0;

    while (digits < text.size && text.data[digits] >= '0' && text.data[digits] <= '9')
        digits++;
    bool number = weir_instant_number(text, &whole, &part);
    if (number || (digits > 0 && digits == text.size)) {
        bool far = !number || whole >= WEIR_INSTANT_HORIZON_NS / S_NS;
        *wait_ns = far ? WEIR_INSTANT_HORIZON_NS : whole * S_NS + part;
        return true;
    }
    if (!weir_instant_http_date(text, now_s, &date))
        return false;
    int64_t wait = date - (server_s ? *server_s : now_s);
    bool far = wait > 0 && (uint64_t)wait >= WEIR_INSTANT_HORIZON_NS / S_NS;
    *wait_ns = far ? WEIR_INSTANT_HORIZON_NS : wait > 0 ? (uint64_t)wait * S_NS : 0;
    return true;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t';
}

bool weir_instant_retry_after(struct weir_bytes text, const int64_t *server_s, int64_t now_s,
                              uint64_t *wait_ns)
{
    size_t start = 0;
    uint64_t wait, longest = 0;

    if (text.size == 0)
        return false;
    /* A date holds a comma, too: what is no member runs to the next one. */
    for (size_t end = 0; end <= text.size; end++) {
        if (end < text.size && text.data[end] != ',')
            continue;
        while (start < end && is_space(text.data[start]))
            start++;
        size_t size = end - start;
        while (size > 0 && is_space(text.data[start + size - 1]))
            size--;
        if (!take_wait((struct weir_bytes){text.data + start, size}, server_s, now_s, &wait))
            continue;
        longest = wait > longest ? wait : longest;
        start = end + 1;
    }
    if (start <= text.size)
        return false;
    *wait_ns = longest;
    return true;
}
