/* SPDX-License-Identifier: Apache-2.0 */
/* See access_log.h. */
#include "wire/log/access_log.h"

#include <string.h>

#include "wire/log/fields.h"

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Reads a time; lines mostly have that of the line before. */
static bool stamp_read(const char *at, uint64_t *t_ns, struct weir_log_room *room)
{
    if (memcmp(at, room->stamp, WEIR_LOG_ZONED_SIZE) != 0) {
        if (!weir_log_zoned_time(at, &room->stamp_ns)) {
            room->stamp[0] = '\0';
            return false;
        }
        memcpy(room->stamp, at, WEIR_LOG_ZONED_SIZE);
    }
    *t_ns = room->stamp_ns;
    return true;
}

static bool time_take(struct log_cursor *cursor, uint64_t *t_ns, struct weir_log_room *room)
{
    if (!log_byte_take(cursor, '[') || cursor->end - cursor->at < WEIR_LOG_ZONED_SIZE ||
        !stamp_read(cursor->at, t_ns, room))
        return false;
    cursor->at += WEIR_LOG_ZONED_SIZE;
    return log_byte_take(cursor, ']') && log_byte_take(cursor, ' ');
}

/* Of three digits; -1: they are none. */
static int status_value(const char *text)
{
    unsigned a = (unsigned)text[0] - '0', b = (unsigned)text[1] - '0', c = (unsigned)text[2] - '0';
    return a <= 9 && b <= 9 && c <= 9 ? (int)(a * 100 + b * 10 + c) : -1;
}

/* Three digits, or "-" where there was no answer (Traefik: also 0), and a space. */
static bool status_take(struct log_cursor *cursor, uint16_t *status)
{
    struct weir_bytes word;
    if (!log_word_take(cursor, &word))
        return false;
    int value = word.size == 3 ? status_value(word.data) : -1;
    if (value < 0 && !(word.size == 1 && (word.data[0] == '-' || word.data[0] == '0')))
        return false;
    *status = value > 0 ? (uint16_t)value : 0;
    return true;
}

/* A word in brackets, which may be empty, and a space. */
static bool bracketed_take(struct log_cursor *cursor)
{
    struct weir_bytes word;
    return log_word_take(cursor, &word) && word.size >= 2 && word.data[0] == '[' &&
           word.data[word.size - 1] == ']';
}

/* $request_length $request_time [$proxy_upstream_name] [$proxy_alternative_upstream_name]
 * $upstream_addr $upstream_response_length $upstream_response_time $upstream_status $req_id; of an
 * upstream that was tried again there are lists, so that no more than their number is looked at. */
static bool is_ingress(struct log_cursor cursor)
{
    struct weir_bytes word;
    uint64_t length;
    if (!log_number_take(&cursor, &length) || !log_byte_take(&cursor, ' ') ||
        !log_word_take(&cursor, &word) || !bracketed_take(&cursor) || !bracketed_take(&cursor))
        return false;
    for (int i = 0; i < 4; i++)
        if (!log_list_take(&cursor, &word))
            return false;
    return cursor.at < cursor.end && !memchr(cursor.at, ' ', (size_t)(cursor.end - cursor.at));
}

/* A count, "router", "server", and a duration in ms. The quotes are looked at and not unescaped. */
static bool is_traefik(struct log_cursor cursor)
{
    uint64_t number;
    if (!log_number_take(&cursor, &number) || !log_byte_take(&cursor, ' '))
        return false;
    for (int i = 0; i < 2; i++) {
        if (!log_byte_take(&cursor, '"'))
            return false;
        char *quote = memchr(cursor.at, '"', (size_t)(cursor.end - cursor.at));
        if (!quote || cursor.end - quote < 2 || quote[1] != ' ')
            return false;
        cursor.at = quote + 2;
    }
    char *digits = cursor.at;
    while (cursor.at < cursor.end && *cursor.at >= '0' && *cursor.at <= '9')
        cursor.at++;
    return cursor.at > digits && cursor.end - cursor.at == 2 && memcmp(cursor.at, "ms", 2) == 0;
}

/* What follows the agent, from the space on. */
static void tail_read(struct weir_log_record *record, struct log_cursor cursor)
{
    record->tail = WEIR_LOG_TAIL_AGENT;
    if (cursor.at == cursor.end)
        return;
    cursor.at++;
    record->tail = WEIR_LOG_TAIL_OTHER;
    if (cursor.at < cursor.end && *cursor.at == '"') {
        struct weir_bytes last;
        if (log_quoted_take(&cursor, &last) && cursor.at == cursor.end) {
            record->tail = WEIR_LOG_TAIL_QUOTED;
            record->forwarded = last.size > 0 ? log_absent_if_dash(last) : (struct weir_bytes){0};
        }
    } else if (is_ingress(cursor)) {
        record->tail = WEIR_LOG_TAIL_INGRESS;
    } else if (is_traefik(cursor)) {
        record->tail = WEIR_LOG_TAIL_TRAEFIK;
    }
}

/* What follows the size. */
static int rest_read(struct weir_log_record *record, struct log_cursor *cursor)
{
    record->tail = WEIR_LOG_TAIL_NONE;
    record->fields = WEIR_LOG_FIELDS_NONE;
    record->referer = record->agent = (struct weir_bytes){NULL, 0};
    if (cursor->at == cursor->end)
        return 0;
    if (!log_byte_take(cursor, ' ') || !log_quoted_take(cursor, &record->referer) ||
        !log_byte_take(cursor, ' ') || !log_quoted_take(cursor, &record->agent) ||
        (cursor->at < cursor->end && *cursor->at != ' '))
        return WEIR_ERR_SYNTAX;
    record->referer = log_absent_if_dash(record->referer);
    record->agent = log_absent_if_dash(record->agent);
    record->fields = WEIR_LOG_FIELDS_AGENT;
    tail_read(record, *cursor);
    return 0;
}

int weir_access_line_parse(struct weir_log_record *record, char *text, size_t size, bool vhost,
                           struct weir_log_room *room)
{
    struct log_cursor cursor = {text, text + size};
    struct weir_bytes ident, request, host = {NULL, 0};
    uint64_t bytes;

    while (cursor.end > text && is_blank(cursor.end[-1]))
        cursor.end--;
    if (vhost && (!log_word_take(&cursor, &host) || host.data[host.size - 1] == ','))
        return WEIR_ERR_SYNTAX;
    if (!log_list_take(&cursor, &record->client) || !log_word_take(&cursor, &ident) ||
        !log_word_take(&cursor, &record->user) || !time_take(&cursor, &record->t_ns, room) ||
        !log_quoted_take(&cursor, &request) || !log_byte_take(&cursor, ' ') ||
        !status_take(&cursor, &record->status) || !log_number_take(&cursor, &bytes))
        return WEIR_ERR_SYNTAX;
    record->client = log_absent_if_dash(record->client);
    record->user = log_absent_if_dash(record->user);
    record->forwarded = (struct weir_bytes){NULL, 0};
    record->written_ns = record->t_ns;
    record->whole_second = true;
    record->resolved = false;
    record->check = NULL;
    record->headers = NULL;
    record->header_count = 0;
    record->host = host;
    log_request_split(record, request);
    return rest_read(record, &cursor);
}
