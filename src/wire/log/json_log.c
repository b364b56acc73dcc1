/* SPDX-License-Identifier: Apache-2.0 */
/* see json_log.h */
#include "wire/log/json_log.h"

#include <string.h>

#include "core/bytes.h"
#include "wire/json/scan.h"
#include "wire/log/fields.h"

#define TIME_END_NS (UINT64_C(1) << 62)

/* What is read of a line beside the record. */
struct json_line {
    struct json_scan scan;
    struct weir_log_record *record;
    struct weir_check_pair *pairs; /* WEIR_CHECK_JSON_PAIRS_MAX */
    struct weir_bytes logger, remote;
    uint64_t t_ns, duration_ns;
    bool has_request, has_time, has_start;
};

/* A member by its name: takes its value, or skips it. */
typedef int (*member_fn)(struct json_line *line, struct weir_bytes name);

static int object_read(struct json_line *line, member_fn take)
{
    struct weir_bytes name;
    uint32_t count = 0;
    int got = json_scan_object(&line->scan);
    while (got >= 0 && (got = json_scan_member(&line->scan, count++, &name)) > 0) {
        got = take(line, name);
        line->scan.field = got < 0 ? line->scan.field : NULL;
    }
    return got;
}

/* A string; any other value is skipped. */
static int text_read(struct json_line *line, const char *field, struct weir_bytes *text)
{
    line->scan.field = field;
    if (json_scan_peek(&line->scan) != '"')
        return json_scan_skip(&line->scan);
    int error = json_scan_string(&line->scan, text);
    *text = text->size > 0 && error == 0 ? log_absent_if_dash(*text) : (struct weir_bytes){0};
    return error;
}

static int time_read(struct json_line *line, const char *field, uint64_t *t_ns)
{
    struct weir_bytes text;
    line->scan.field = field;
    if (json_scan_peek(&line->scan) != '"')
        return json_scan_seconds(&line->scan, t_ns);
    const char *at = line->scan.at;
    int error = json_scan_string(&line->scan, &text);
    if (error == 0 && !weir_log_iso_time(text.data, text.size, t_ns))
        error = json_scan_fail(&line->scan, WEIR_ERR_SYNTAX, at,
                               "neither seconds since the epoch nor a time as in RFC 3339");
    return error;
}

static int status_read(struct json_line *line)
{
    uint64_t status;
    line->scan.field = "status";
    int error = json_scan_unsigned(&line->scan, &status);
    line->record->status = error == 0 && status <= 999 ? (uint16_t)status : 0;
    return error;
}

/* Keeps a header field unless its value is hidden. */
static void pair_add(struct json_line *line, struct weir_bytes name, struct weir_bytes value)
{
    struct weir_log_record *record = line->record;
    if (record->header_count < WEIR_CHECK_JSON_PAIRS_MAX && !weir_bytes_are(value, "REDACTED"))
        line->pairs[record->header_count++] = (struct weir_check_pair){name, value};
}

/* Ends a line that was read. */
static int line_end(struct json_line *line, int got)
{
    return got < 0 ? got : json_scan_end(&line->scan);
}

static struct json_line line_of(struct weir_log_record *record, char *text, size_t size,
                                struct weir_log_room *room, struct weir_reason *reason)
{
    *record = (struct weir_log_record){0};
    return (struct json_line){
        .scan = {.text = text, .at = text, .end = text + size, .index = -1, .reason = reason},
        .record = record,
        .pairs = room->check.headers,
    };
}

/* --- Caddy ------------------------------------------------------------------------------------ */

/* "Name": ["value", …] */
static int caddy_header(struct json_line *line, struct weir_bytes name)
{
    struct weir_bytes value;
    uint32_t count = 0;
    if (json_scan_peek(&line->scan) != '[')
        return json_scan_skip(&line->scan);
    int got = json_scan_array(&line->scan);
    while (got >= 0 && (got = json_scan_element(&line->scan, count++)) > 0) {
        got = json_scan_string(&line->scan, &value);
        if (got == 0)
            pair_add(line, name, value);
    }
    return got;
}

static int caddy_request(struct json_line *line, struct weir_bytes name)
{
    struct weir_log_record *record = line->record;
    if (weir_bytes_are(name, "remote_ip") || weir_bytes_are(name, "remote_addr"))
        return text_read(line, "remote_ip", &line->remote);
    if (weir_bytes_are(name, "client_ip"))
        return text_read(line, "client_ip", &record->client);
    if (weir_bytes_are(name, "method"))
        return text_read(line, "method", &record->method);
    if (weir_bytes_are(name, "host"))
        return text_read(line, "host", &record->host);
    if (weir_bytes_are(name, "uri"))
        return text_read(line, "uri", &record->target);
    if (!weir_bytes_are(name, "headers") || json_scan_peek(&line->scan) != '{')
        return json_scan_skip(&line->scan);
    record->fields = WEIR_LOG_FIELDS_ALL;
    return object_read(line, caddy_header);
}

static int caddy_member(struct json_line *line, struct weir_bytes name)
{
    if (weir_bytes_are(name, "ts")) {
        line->has_time = true;
        return time_read(line, "ts", &line->t_ns);
    }
    if (weir_bytes_are(name, "logger"))
        return text_read(line, "logger", &line->logger);
    if (weir_bytes_are(name, "user_id"))
        return text_read(line, "user_id", &line->record->user);
    if (weir_bytes_are(name, "status") && json_scan_peek(&line->scan) != '"')
        return status_read(line);
    if (weir_bytes_are(name, "duration") && json_scan_peek(&line->scan) != '"') {
        line->scan.field = "duration";
        return json_scan_seconds(&line->scan, &line->duration_ns);
    }
    if (!weir_bytes_are(name, "request") || json_scan_peek(&line->scan) != '{')
        return json_scan_skip(&line->scan);
    line->has_request = true;
    return object_read(line, caddy_request);
}

/* Other loggers of Caddy tell of the same requests (http.log.error, http.handlers…). */
static bool is_access(struct weir_bytes logger)
{
    static const char name[] = "http.log.access";
    return !logger.data ||
           (logger.size >= sizeof name - 1 && memcmp(logger.data, name, sizeof name - 1) == 0);
}

int weir_caddy_line_parse(struct weir_log_record *record, char *text, size_t size,
                          struct weir_log_room *room, struct weir_reason *reason)
{
    struct json_line line = line_of(record, text, size, room, reason);
    int error = line_end(&line, object_read(&line, caddy_member));
    if (error < 0)
        return error;
    if (!line.has_request || !is_access(line.logger))
        return WEIR_LOG_OTHER;
    if (!line.has_time)
        return json_scan_fail(&line.scan, WEIR_ERR_SYNTAX, text, "no ts");
    record->headers = line.pairs;
    record->resolved = record->client.data && !weir_bytes_equal(record->client, line.remote);
    if (!record->client.data)
        record->client = line.remote;
    record->written_ns = line.t_ns;
    record->t_ns = line.t_ns > line.duration_ns ? line.t_ns - line.duration_ns : 0;
    return 0;
}

/* --- Traefik ---------------------------------------------------------------------------------- */

static int traefik_time(struct json_line *line, const char *field, bool start)
{
    if (line->has_start && !start)
        return json_scan_skip(&line->scan);
    line->has_start = start;
    line->has_time = true;
    return time_read(line, field, &line->t_ns);
}

/* request_NAME, of the fields that Traefik is set to keep. */
static int traefik_header(struct json_line *line, struct weir_bytes name)
{
    static const char prefix[] = "request_";
    const size_t skip = sizeof prefix - 1;
    struct weir_bytes value;
    if (name.size <= skip || memcmp(name.data, prefix, skip) != 0 ||
        json_scan_peek(&line->scan) != '"')
        return json_scan_skip(&line->scan);
    int error = json_scan_string(&line->scan, &value);
    if (error == 0) {
        line->record->fields = WEIR_LOG_FIELDS_ALL;
        pair_add(line, (struct weir_bytes){name.data + skip, name.size - skip}, value);
    }
    return error;
}

static int traefik_member(struct json_line *line, struct weir_bytes name)
{
    struct weir_log_record *record = line->record;
    if (weir_bytes_are(name, "ClientHost"))
        return text_read(line, "ClientHost", &record->client);
    if (weir_bytes_are(name, "ClientAddr"))
        return text_read(line, "ClientAddr", &line->remote);
    if (weir_bytes_are(name, "ClientUsername"))
        return text_read(line, "ClientUsername", &record->user);
    if (weir_bytes_are(name, "RequestHost"))
        return text_read(line, "RequestHost", &record->host);
    if (weir_bytes_are(name, "RequestPath"))
        return text_read(line, "RequestPath", &record->target);
    if (weir_bytes_are(name, "RequestMethod")) {
        line->has_request = true;
        return text_read(line, "RequestMethod", &record->method);
    }
    if (weir_bytes_are(name, "StartUTC"))
        return traefik_time(line, "StartUTC", true);
    if (weir_bytes_are(name, "StartLocal"))
        return traefik_time(line, "StartLocal", true);
    if (weir_bytes_are(name, "time"))
        return traefik_time(line, "time", false);
    if (weir_bytes_are(name, "Duration")) {
        line->scan.field = "Duration";
        return json_scan_unsigned(&line->scan, &line->duration_ns);
    }
    return weir_bytes_are(name, "DownstreamStatus") ? status_read(line)
                                                    : traefik_header(line, name);
}

int weir_traefik_line_parse(struct weir_log_record *record, char *text, size_t size,
                            struct weir_log_room *room, struct weir_reason *reason)
{
    struct json_line line = line_of(record, text, size, room, reason);
    int error = line_end(&line, object_read(&line, traefik_member));
    if (error < 0)
        return error;
    if (!line.has_request)
        return WEIR_LOG_OTHER;
    if (!line.has_time)
        return json_scan_fail(&line.scan, WEIR_ERR_SYNTAX, text, "neither StartUTC nor time");
    record->headers = line.pairs;
    record->resolved = record->client.data;
    if (!record->client.data)
        record->client = line.remote;
    record->t_ns = record->written_ns = line.t_ns;
    if (line.has_start && line.duration_ns < TIME_END_NS - line.t_ns)
        record->written_ns += line.duration_ns;
    return 0;
}
