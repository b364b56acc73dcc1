/* SPDX-License-Identifier: Apache-2.0 */
/* see formats.h */
#include "wire/log/formats.h"

#include <stdio.h>

#include "wire/log/access_log.h"
#include "wire/log/haproxy_log.h"
#include "wire/log/json_log.h"

static int refuse(struct weir_reason *reason, const char *text)
{
    snprintf(reason->text, sizeof reason->text, "%s", text);
    return WEIR_ERR_SYNTAX;
}

/* weir's own: a check with its time. */
static int parse_check(struct weir_log_record *record, char *text, size_t size,
                       struct weir_log_room *room, struct weir_reason *reason)
{
    struct weir_check_cursor cursor;
    weir_check_cursor_init(&cursor, text, size);
    int got = weir_check_cursor_next(&cursor, &room->check, reason);
    if (got < 0)
        return got;
    if (got == 0 || cursor.array)
        return refuse(reason, "line: not a JSON object");
    if (!room->check.has_t)
        return refuse(reason, "t: missing");
    *record = (struct weir_log_record){
        .t_ns = room->check.t_ns, .written_ns = room->check.t_ns, .check = &room->check};
    return 0;
}

static int parse_access(struct weir_log_record *record, char *text, size_t size,
                        struct weir_log_room *room, struct weir_reason *reason)
{
    return weir_access_line_parse(record, text, size, false, room);
}

/* A quoted field behind the agent may be anything: it is X-Forwarded-For in nginx's main only. */
static int parse_unforwarded(struct weir_log_record *record, char *text, size_t size,
                             struct weir_log_room *room, struct weir_reason *reason)
{
    int error = weir_access_line_parse(record, text, size, false, room);
    record->forwarded = (struct weir_bytes){NULL, 0};
    return error;
}

static int parse_vhost(struct weir_log_record *record, char *text, size_t size,
                       struct weir_log_room *room, struct weir_reason *reason)
{
    int error = weir_access_line_parse(record, text, size, true, room);
    record->forwarded = (struct weir_bytes){NULL, 0};
    return error;
}

static int parse_haproxy(struct weir_log_record *record, char *text, size_t size,
                         struct weir_log_room *room, struct weir_reason *reason)
{
    return weir_haproxy_line_parse(record, text, size);
}

static const struct weir_log_row rows[WEIR_LOG_FORMATS] = {
    [WEIR_LOG_JSONL] = {"jsonl", "weir's own: a JSON object a line, with the time `t`",
                        "line: not a JSON object", parse_check, -1},
    [WEIR_LOG_COMMON] = {"common", "Apache's common log", "line: not of the common log format",
                         parse_unforwarded, WEIR_LOG_TAIL_NONE},
    [WEIR_LOG_COMBINED] = {"combined", "Apache's combined log, nginx's default",
                           "line: not of the combined log format", parse_unforwarded,
                           WEIR_LOG_TAIL_AGENT},
    [WEIR_LOG_VHOST_COMBINED] = {"vhost_combined", "Apache's, with the virtual host before it",
                                 "line: not of the vhost_combined log format", parse_vhost, -1},
    [WEIR_LOG_NGINX_MAIN] = {"nginx-main", "nginx's `main`: combined, then X-Forwarded-For",
                             "line: not of nginx's log format main", parse_access,
                             WEIR_LOG_TAIL_QUOTED},
    [WEIR_LOG_INGRESS_NGINX] = {"ingress-nginx",
                                "the Kubernetes ingress controller's `upstreaminfo`",
                                "line: not of ingress-nginx's log format", parse_unforwarded,
                                WEIR_LOG_TAIL_INGRESS},
    [WEIR_LOG_TRAEFIK_CLF] = {"traefik-clf", "Traefik's default (`format: common`)",
                              "line: not of Traefik's common log format", parse_unforwarded,
                              WEIR_LOG_TAIL_TRAEFIK},
    [WEIR_LOG_TRAEFIK_JSON] = {"traefik-json", "Traefik's `format: json`",
                               "line: not of Traefik's JSON log format", weir_traefik_line_parse,
                               -1},
    [WEIR_LOG_CADDY_JSON] = {"caddy-json", "Caddy's default",
                             "line: not of Caddy's JSON log format", weir_caddy_line_parse, -1},
    [WEIR_LOG_HAPROXY] = {"haproxy", "HAProxy's `option httplog`, also behind syslog",
                          "line: not of HAProxy's HTTP log format", parse_haproxy, -1},
};

const struct weir_log_row *weir_log_row(enum weir_log_format format)
{
    return &rows[format];
}

int weir_log_parse(enum weir_log_format format, struct weir_log_record *record, char *text,
                   size_t size, struct weir_log_room *room, struct weir_reason *reason)
{
    reason->text[0] = '\0';
    int got = rows[format].parse(record, text, size, room, reason);
    if (got < 0 && reason->text[0] == '\0')
        (void)refuse(reason, rows[format].wrong);
    return got;
}

unsigned weir_log_fits(enum weir_log_format format, char *text, size_t size,
                       struct weir_log_room *room)
{
    struct weir_log_record record;
    struct weir_reason reason;
    if (weir_log_parse(format, &record, text, size, room, &reason) != 0)
        return 0;
    return rows[format].tail < 0 || rows[format].tail == record.tail ? 2 : 1;
}

int weir_log_best(const unsigned points[WEIR_LOG_FORMATS])
{
    int best = -1;
    for (int i = 0; i < WEIR_LOG_FORMATS; i++)
        if (points[i] > 0 && (best < 0 || points[i] > points[best]))
            best = i;
    return best;
}
