/* SPDX-License-Identifier: Apache-2.0 */
/* see haproxy_log.h */
#include "wire/log/haproxy_log.h"

#include <string.h>

#include "wire/log/fields.h"

#define STAMP_SIZE (WEIR_LOG_DAY_TIME_SIZE + 5) /* .655], the bracket included */
#define NS_PER_MS UINT64_C(1000000)
#define TIME_END_NS (UINT64_C(1) << 62)

/* ADDRESS:PORT, where IPv6 has no brackets, so that it is no text that a door would read; a Unix
 * socket is "unix:" and its number. The port is cut off. */
static bool client_read(struct weir_log_record *record, const char *start, const char *end)
{
    const char *colon = end, *priority = start < end && *start == '<' ? start + 1 : end;
    while (priority < end && *priority >= '0' && *priority <= '9')
        priority++;
    if (priority < end && *priority == '>') /* syslog's, without a header behind it */
        start = priority + 1;
    while (colon > start && *--colon != ':')
        continue;
    bool local = colon - start == 4 && memcmp(start, "unix", 4) == 0;
    record->client = (struct weir_bytes){start, (size_t)(colon - start) + local};
    return colon > start;
}

/* Finds the time, "[06/Feb/2009:12:14:14.655] ", behind the client. The cursor moves behind it. */
static bool time_find(struct log_cursor *cursor, struct weir_log_record *record)
{
    char *at = cursor->at, *bracket;
    while ((bracket = memchr(at, '[', (size_t)(cursor->end - at)))) {
        char *stamp = at = bracket + 1;
        int ms = cursor->end - stamp > STAMP_SIZE && stamp[STAMP_SIZE - 1] == ']'
                     ? weir_log_digits(stamp + WEIR_LOG_DAY_TIME_SIZE + 1, 3)
                     : -1;
        if (ms < 0 || stamp[WEIR_LOG_DAY_TIME_SIZE] != '.' || stamp[STAMP_SIZE] != ' ' ||
            bracket - cursor->at < 2 || bracket[-1] != ' ' ||
            !weir_log_day_time(stamp, &record->t_ns))
            continue;
        char *end = bracket - 1, *start = end;
        while (start > cursor->at && start[-1] != ' ')
            start--;
        record->t_ns += (uint64_t)ms * NS_PER_MS;
        cursor->at = stamp + STAMP_SIZE + 1;
        return client_read(record, start, end);
    }
    return false;
}

/* The last of five durations in ms, "10/0/30/69/109", of which any may be -1 and the last begin
 * with a plus sign. */
static bool durations_read(struct weir_bytes word, uint64_t *total_ns)
{
    int parts = 1;
    for (size_t i = 0; i < word.size; i++)
        parts += word.data[i] == '/';
    const char *at = word.data + word.size, *end = at;
    while (at > word.data && at[-1] != '/')
        at--;
    uint64_t ms = 0;
    at += at < end && *at == '+';
    for (; at < end && *at >= '0' && *at <= '9' && ms < TIME_END_NS / NS_PER_MS; at++)
        ms = ms * 10 + (uint64_t)(*at - '0');
    *total_ns = ms < TIME_END_NS / NS_PER_MS ? ms * NS_PER_MS : 0;
    return parts == 5;
}

/* What stands between quotes; the rest of the line where it was cut off. */
static bool request_take(struct log_cursor *cursor, struct weir_bytes *request)
{
    char *quote = memchr(cursor->at, '"', (size_t)(cursor->end - cursor->at));
    if (!quote)
        return false;
    char *start = quote + 1;
    char *end = memchr(start, '"', (size_t)(cursor->end - start));
    *request = (struct weir_bytes){start, (size_t)((end ? end : cursor->end) - start)};
    return true;
}

/* The status, or -1 where there was none. */
static bool status_read(struct weir_bytes word, uint16_t *status)
{
    int value = word.size == 3 ? weir_log_digits(word.data, 3) : 0;
    *status = value > 0 ? (uint16_t)value : 0;
    return value > 0 || (word.size == 2 && memcmp(word.data, "-1", 2) == 0);
}

/* Frontend, server, durations, status, bytes, two cookies, termination state, connections, queues.
 */
enum { DURATIONS = 2, STATUS = 3, STATE = 7, WORDS = 10 };

int weir_haproxy_line_parse(struct weir_log_record *record, char *text, size_t size)
{
    struct log_cursor cursor = {text, text + size};
    struct weir_bytes words[WORDS], request;
    uint64_t total_ns;

    *record = (struct weir_log_record){0};
    if (!time_find(&cursor, record))
        return WEIR_LOG_OTHER;
    for (int i = 0; i < WORDS; i++)
        if (!log_word_take(&cursor, &words[i]))
            return i <= STATE ? WEIR_LOG_OTHER : WEIR_ERR_SYNTAX;
    if (!durations_read(words[DURATIONS], &total_ns))
        return WEIR_LOG_OTHER;
    if (!status_read(words[STATUS], &record->status) || words[STATE].size != 4 ||
        !request_take(&cursor, &request))
        return WEIR_ERR_SYNTAX;
    record->written_ns = record->t_ns + total_ns;
    log_request_split(record, request);
    return record->written_ns < TIME_END_NS ? 0 : WEIR_ERR_SYNTAX;
}
