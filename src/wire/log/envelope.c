/* SPDX-License-Identifier: Apache-2.0 */
/* see envelope.h */
#include "wire/log/envelope.h"

#include <string.h>

#include "core/bytes.h"
#include "wire/json/scan.h"
#include "wire/log/fields.h"

const char *weir_log_envelope_name(enum weir_log_envelope envelope)
{
    static const char *const names[WEIR_LOG_ENVELOPES] = {"", "docker", "cri"};
    return names[envelope];
}

/* Reads the three members; others (attrs) are skipped. */
static bool docker_read(struct json_scan *scan, struct weir_bytes *log, struct weir_bytes *stream,
                        struct weir_bytes *time)
{
    struct weir_bytes name;
    uint32_t count = 0;
    int got = json_scan_object(scan);
    while (got >= 0 && (got = json_scan_member(scan, count++, &name)) > 0) {
        struct weir_bytes *to = weir_bytes_are(name, "log")      ? log
                                : weir_bytes_are(name, "stream") ? stream
                                : weir_bytes_are(name, "time")   ? time
                                                                 : NULL;
        got = to ? json_scan_string(scan, to) : json_scan_skip(scan);
    }
    return got == 0 && json_scan_end(scan) == 0 && log->data && stream->data && time->data;
}

static bool docker_unwrap(char *text, size_t size, struct weir_log_piece *piece)
{
    struct json_scan scan = {.text = text, .at = text, .end = text + size, .index = -1};
    struct weir_bytes log = {0}, stream = {0}, time = {0};
    if (!docker_read(&scan, &log, &stream, &time))
        return false;
    *piece = (struct weir_log_piece){text + (log.data - text), log.size,
                                     weir_bytes_are(stream, "stderr"), true};
    if (piece->size > 0 && piece->text[piece->size - 1] == '\n') {
        piece->size--;
        piece->goes_on = false;
    }
    return true;
}

/* TIMESTAMP STREAM TAGS LINE; the line may be empty. */
static bool cri_unwrap(char *text, size_t size, struct weir_log_piece *piece)
{
    struct log_cursor cursor = {text, text + size};
    struct weir_bytes time, stream;
    uint64_t t_ns;
    if (size < 30 || text[4] != '-' || !log_word_take(&cursor, &time) ||
        !weir_log_iso_time(time.data, time.size, &t_ns) || !log_word_take(&cursor, &stream))
        return false;
    bool is_error = weir_bytes_are(stream, "stderr");
    if ((!is_error && !weir_bytes_are(stream, "stdout")) || cursor.at == cursor.end ||
        (*cursor.at != 'F' && *cursor.at != 'P'))
        return false;
    bool goes_on = *cursor.at++ == 'P';
    if (cursor.at < cursor.end && *cursor.at == ':')
        while (cursor.at < cursor.end && *cursor.at != ' ')
            cursor.at++;
    if (cursor.at < cursor.end && *cursor.at++ != ' ')
        return false;
    *piece =
        (struct weir_log_piece){cursor.at, (size_t)(cursor.end - cursor.at), is_error, goes_on};
    return true;
}

bool weir_log_unwrap(enum weir_log_envelope envelope, char *text, size_t size,
                     struct weir_log_piece *piece)
{
    if (envelope == WEIR_LOG_DOCKER)
        return size > 0 && text[0] == '{' && docker_unwrap(text, size, piece);
    if (envelope == WEIR_LOG_CRI)
        return cri_unwrap(text, size, piece);
    *piece = (struct weir_log_piece){text, size, false, false};
    return true;
}
